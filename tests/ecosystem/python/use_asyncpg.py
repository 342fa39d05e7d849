"""asyncpg, which encodes by the type that the server tells."""

import asyncio
from datetime import datetime, timezone

import asyncpg


async def main():
    db = await asyncpg.connect()
    await db.execute("CREATE TABLE b (id integer PRIMARY KEY)")
    await db.execute("SELECT ttl.enable('b', $1)", "1 hour")
    await db.execute("SELECT ttl.set_default('b', $1::integer)", 1800)
    old = datetime(2001, 1, 1, tzinfo=timezone.utc)
    await db.copy_records_to_table("b", records=[(n,) for n in range(10)], columns=["id"])
    await db.copy_records_to_table("b", records=[(n, old) for n in range(10, 20)], columns=["id", "_ts"])
    count = await db.prepare("SELECT count(*) FROM b")
    assert await count.fetchval() == 10
    await db.executemany("INSERT INTO b VALUES ($1)", [(n,) for n in range(10, 20)])
    assert await count.fetchval() == 20
    # Many at once on the same expired keys: one each.
    await db.execute("SELECT set_config('ttl.preserve_ts', 'on', false)")
    await db.execute("UPDATE b SET _ts = $1", old)
    await db.execute("RESET ttl.preserve_ts")
    pool = await asyncpg.create_pool(min_size=8, max_size=8)

    async def upsert(n):
        text = "INSERT INTO b VALUES ($1) ON CONFLICT (id) DO NOTHING RETURNING id"
        return await pool.fetchval(text, n % 10) is not None

    inserted = await asyncio.gather(*(upsert(n) for n in range(200)))
    assert sum(inserted) == 10, sum(inserted)
    await pool.close()
    await db.close()


asyncio.run(main())
print("ok: asyncpg")
