// What an application sees of expired rows.
const assert = require("assert");
const pg = require("pg");

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 });

async function main() {
  await pool.query("INSERT INTO cart SELECT n, 'user ' || n FROM generate_series(1, 20) n");
  const client = await pool.connect();
  await client.query("BEGIN");
  await client.query("SET LOCAL ttl.preserve_ts = on");
  await client.query("UPDATE cart SET _ts = '2001-01-01' WHERE id <= 10");
  await client.query("COMMIT");
  client.release();
  assert.equal((await pool.query("SELECT id FROM cart")).rowCount, 10);

  const upsert = {
    name: "upsert",
    text: "INSERT INTO cart (id, owner) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET owner = excluded.owner RETURNING xmax = 0 AS inserted",
  };
  const results = await Promise.all(
    Array.from({ length: 400 }, (_, n) => {
      const id = (n % 10) + 1;
      return pool.query({ ...upsert, values: [id, `user ${id}`] });
    }),
  );
  assert.equal(results.filter((result) => result.rows[0].inserted).length, 10);
  await pool.query("SELECT ttl.set_default('cart', $1)", [1800]);
  await pool.query("SELECT ttl.set_default('cart', $1)", ["30 days"]);
  await pool.end();
}

main().then(() => console.log("ok: node-postgres"));
