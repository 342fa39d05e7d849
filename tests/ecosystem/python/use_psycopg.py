"""psycopg 3."""

import psycopg

with psycopg.connect(autocommit=True) as db:
    db.execute("CREATE TABLE a (id integer PRIMARY KEY)")
    # A number and an interval, as parameters whose type the server finds.
    db.execute("SELECT ttl.enable('a', %s)", [3600])
    db.execute("SELECT ttl.set_default('a', %s)", ["1 hour"])
    assert db.execute("SELECT default_ttl FROM ttl.tables WHERE relation = 'a'::regclass").fetchone() == (3600,)

    # COPY stamps unless it brings _ts.
    with db.cursor().copy("COPY a (id) FROM STDIN") as copy:
        for n in range(10):
            copy.write_row([n])
    with db.cursor().copy("COPY a (id, _ts) FROM STDIN") as copy:
        for n in range(10, 20):
            copy.write_row([n, "2001-01-01 00:00:00+00"])
    count = "SELECT count(*) FROM a WHERE id >= %s"
    assert db.execute(count, [0], prepare=True).fetchone() == (10,)
    with db.cursor().copy("COPY a (id) TO STDOUT") as copy:
        assert len(list(copy.rows())) == 10

    # A prepared statement follows the default.
    db.execute("SELECT ttl.set_default('a', -1)")
    left = db.execute(count, [0], prepare=True).fetchone()
    assert left == (10,), left
    db.execute("SET ttl.preserve_ts = on")
    db.execute("UPDATE a SET _ts = ttl.now() - interval '10 minutes' WHERE id < 5")
    db.execute("RESET ttl.preserve_ts")
    assert db.execute(count, [0], prepare=True).fetchone() == (10,)
    db.execute("SELECT ttl.set_default('a', 60)")
    assert db.execute(count, [0], prepare=True).fetchone() == (5,)

    # A pipeline: each statement finds what the one before it has left.
    with db.pipeline():
        cursors = [
            db.execute("INSERT INTO a VALUES (%s) ON CONFLICT DO NOTHING RETURNING id", [n]) for n in range(10)
        ]
    assert [len(cursor.fetchall()) for cursor in cursors] == [1] * 5 + [0] * 5
    # A cursor of the server, read in pieces.
    with db.transaction(), db.cursor("pieces") as cursor:
        cursor.itersize = 3
        cursor.execute("SELECT id FROM a")
        assert len(cursor.fetchall()) == 10
print("ok: psycopg")
