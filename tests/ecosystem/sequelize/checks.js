// `sync`, and what an application sees of expired rows.
const assert = require("assert");
const { Sequelize } = require("sequelize");

const db = new Sequelize(process.env.DATABASE_URL, { logging: false });
const Cart = require("./cart")(db);

async function main() {
  await db.sync();
  await db.query("SELECT ttl.enable('cart', '30 days')");
  // Refused, and nothing is lost.
  await assert.rejects(db.sync({ alter: true }), (error) => error.original.code === "2BP01");
  await db.sync({ alter: { drop: false } });

  await Cart.bulkCreate([1, 2, 3, 4].map((id) => ({ id, owner: `user ${id}` })));
  await db.transaction(async (transaction) => {
    await db.query("SET LOCAL ttl.preserve_ts = on", { transaction });
    await db.query("UPDATE cart SET _ts = '2001-01-01' WHERE id <= 2", { transaction });
  });
  assert.equal(await Cart.count(), 2);
  assert.equal(await Cart.findByPk(1), null);
  const [, created] = await Cart.findOrCreate({ where: { id: 1 }, defaults: { owner: "user 1" } });
  assert.ok(created);
  await Cart.upsert({ id: 2, owner: "user 2" });
  assert.equal(await Cart.count(), 4);
  await db.close();
}

main().then(() => console.log("ok: Sequelize"));
