// What an application sees of expired rows.
const assert = require("assert");
const { PrismaClient } = require("@prisma/client");

const { PrismaPg } = require("@prisma/adapter-pg");

const db = new PrismaClient({ adapter: new PrismaPg({ connectionString: process.env.DATABASE_URL }) });

async function main() {
  for (let id = 1; id <= 6; id++) await db.cart.create({ data: { id, owner: `user ${id}` } });
  await db.$transaction([
    db.$executeRaw`SET LOCAL ttl.preserve_ts = on`,
    db.$executeRaw`UPDATE cart SET _ts = '2001-01-01' WHERE id <= 3`,
  ]);
  assert.equal(await db.cart.count(), 3);
  assert.equal(await db.cart.findUnique({ where: { id: 1 } }), null);
  const row = { id: 1, owner: "user 1" };
  assert.ok(await db.cart.upsert({ where: { id: 1 }, create: row, update: { owner: "updated" } }));
  assert.equal((await db.cart.findUnique({ where: { id: 1 } })).owner, "user 1");
  await db.cart.update({ where: { id: 1 }, data: { ttl: 60 } });
  await assert.rejects(db.cart.update({ where: { id: 2 }, data: { owner: "nobody" } }), { code: "P2025" });
  assert.equal((await db.cart.createMany({ data: [{ id: 2, owner: "user 2" }, { id: 3, owner: "user 3" }] })).count, 2);
  await db.$disconnect();
}

main().then(() => console.log("ok: Prisma's client"));
