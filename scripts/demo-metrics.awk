# demo-metrics.awk: from the metrics of a run of the demo (demo-metrics.sh) to a picture of them, as SVG.

function text(x, y, size, anchor, what) {
    printf "<text x=\"%d\" y=\"%d\" font-size=\"%d\" text-anchor=\"%s\">%s</text>\n", x, y, size, anchor, what
}

# A table's line in a panel: it is broken where the value is not known.
function draw(metric, table, colour, base, most,    s, path, pen, value) {
    for (s = first; s <= last; s++) {
        if (!((metric, table, s) in known)) { pen = "M"; continue }
        value = known[metric, table, s]
        path = path sprintf("%s%.1f %.1f", pen == "L" ? "L" : "M", x0 + (s - 1) * step, base - high * value / most)
        pen = "L"
    }
    printf "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", path, colour
}

function note(metric, table, second, value) {
    if (value == "NaN") return
    known[metric, table, second] = value
    if (value + 0 > top[metric]) top[metric] = value + 0
}

{
    second = $1 + 0; table = $3
    if (!first) first = second
    last = second
    if ($2 == "ttl_rows_deleted_total") {
        if ((table, second - 1) in total) note("deleted", table, second, $4 - total[table, second - 1])
        total[table, second] = $4
    }
    if ($2 == "ttl_deletion_lag_seconds") note("lag", table, second, $4)
    if ($2 == "ttl_problems") note("problems", table, second, $4)
}

END {
    if (last <= first) {
        print "no metrics" >"/dev/stderr"
        exit 1
    }
    tables = split("sessions orders log", table_name, " ")
    split("#1f6f8b #e39b5f #6a994e", colour, " ")
    panels = split("deleted lag problems", metric, " ")
    title["deleted"] = "rows deleted in a second: ttl_rows_deleted_total"
    title["lag"] = "seconds behind: ttl_deletion_lag_seconds; a gap where nobody looks"
    title["problems"] = "ttl_problems: what an alert is for"
    x0 = 60; step = 34; high = 90; gap = 44; above = 44
    width = x0 + (last - 1) * step + 30
    height = above + panels * (high + gap) + 20
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" ", width, height
    print "font-family=\"sans-serif\" fill=\"#24292f\">"
    print "<title>Metrics of background deletion, second by second</title>"
    printf "<rect fill=\"#ffffff\" width=\"%d\" height=\"%d\"/>\n", width, height
    for (t = 1; t <= tables; t++) {
        printf "<rect fill=\"%s\" x=\"%d\" y=\"14\" width=\"12\" height=\"12\"/>\n", colour[t], x0 + (t - 1) * 110
        text(x0 + 18 + (t - 1) * 110, 25, 13, "start", table_name[t])
    }
    # Lines of one value lie beside each other.
    for (p = 1; p <= panels; p++) {
        base = above + p * (high + gap) - 20
        most = top[metric[p]] > 1 ? top[metric[p]] : 1
        text(x0, base - high - 8, 13, "start", title[metric[p]])
        printf "<path d=\"M%d %dH%dM%d %dH%d\" stroke=\"#d0d7de\"/>\n", x0, base, width - 20, x0, base - high, width - 20
        text(x0 - 8, base + 4, 12, "end", "0")
        text(x0 - 8, base - high + 4, 12, "end", most == int(most) ? most : sprintf("%.1f", most))
        for (t = 1; t <= tables; t++) draw(metric[p], table_name[t], colour[t], base - 2.5 * (t - 1), most)
    }
    for (s = 1; s <= last; s++)
        if (s == 1 || s % 5 == 0) text(x0 + (s - 1) * step, base + 18, 12, "middle", s " s")
    print "</svg>"
}
