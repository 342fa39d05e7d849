# demo-svg.awk: from what demo.sh prints to a picture of it, as SVG.

function text(x, y, size, anchor, what) {
    printf "<text x=\"%d\" y=\"%d\" font-size=\"%d\" text-anchor=\"%s\">%s</text>\n", x, y, size, anchor, what
}

function box(x, top, width, bottom, colour) {
    if (bottom > top)
        printf "<rect fill=\"%s\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>\n", colour, x, top, width, bottom - top
}

# A line of figures: the second; for each table the rows seen, the rows on disk, a bar.
/^ *[0-9]+s / {
    gsub(/█|░/, "")
    seconds++
    for (t = 1; t <= 3; t++) {
        seen[t, seconds] = $(2 * t)
        disk[t, seconds] = $(2 * t + 1)
        if (disk[t, seconds] > most[t]) most[t] = disk[t, seconds]
    }
}

# What is done between two of them: the command stands before the dashes.
/^  >>  / {
    sub(/^  >>  /, "")
    sub(/ -- .*/, "")
    done[seconds] = $0
}

END {
    if (seconds < 2) {
        print "no figures" >"/dev/stderr"
        exit 1
    }
    name[1] = "sessions: 8 s after the last click"
    name[2] = "orders: half of them, 5 s or 14 s"
    name[3] = "log: 6 s"
    users = "#1f6f8b"; expired = "#e39b5f"
    left = 20; step = 34; high = 84; gap = 40; above = 40
    last = above + 3 * (high + gap)
    width = 2 * left + seconds * step
    height = last + 76
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" ", width, height
    print "font-family=\"sans-serif\" fill=\"#24292f\">"
    print "<title>Rows that users see, and expired rows on disk, second by second</title>"
    box(0, 0, width, height, "#ffffff")
    box(left, 14, 12, 26, users)
    text(left + 18, 25, 13, "start", "rows that users see")
    box(left + 170, 14, 12, 26, expired)
    text(left + 188, 25, 13, "start", "expired: on disk, but no query finds them")
    for (t = 1; t <= 3; t++) {
        base = above + t * (high + gap)
        text(left, base - high - 8, 13, "start", name[t])
        for (s = 1; s <= seconds; s++) {
            x = left + (s - 1) * step
            live = base - high * seen[t, s] / most[t]
            box(x, base - high * disk[t, s] / most[t], step - 4, live, expired)
            box(x, live, step - 4, base, users)
            if (t == 3 && (s == 1 || s % 5 == 0)) text(x + step / 2 - 2, last + 16, 12, "middle", s " s")
        }
    }
    for (s = 1; s <= seconds; s++)
        if (s in done) {
            x = left + s * step - 2
            y = last + 34 + 16 * events++
            printf "<path d=\"M%d %dV%d\" stroke=\"#57606a\" stroke-dasharray=\"4 3\"/>\n", x, above, y - 4
            text(x - 5, y, 12, "end", done[s])
        }
    print "</svg>"
}
