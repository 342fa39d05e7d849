// What an application sees of expired rows.
const assert = require("assert");
const { drizzle } = require("drizzle-orm/node-postgres");
const { pgTable, integer, text } = require("drizzle-orm/pg-core");
const { sql } = require("drizzle-orm");

const cart = pgTable("cart", { id: integer().primaryKey(), owner: text().notNull().unique() });
const db = drizzle(process.env.DATABASE_URL);

async function main() {
  await db.insert(cart).values([1, 2, 3, 4].map((id) => ({ id, owner: `user ${id}` })));
  await db.transaction(async (tx) => {
    await tx.execute(sql`SET LOCAL ttl.preserve_ts = on`);
    await tx.execute(sql`UPDATE cart SET _ts = '2001-01-01' WHERE id <= 2`);
  });
  assert.equal((await db.select().from(cart)).length, 2);
  const row = { id: 1, owner: "user 1" };
  await db.insert(cart).values(row).onConflictDoUpdate({ target: cart.id, set: { owner: "updated" } });
  assert.equal((await db.select().from(cart).where(sql`id = 1`))[0].owner, "user 1");
  await db.$client.end();
}

main().then(() => console.log("ok: Drizzle's queries"));
