// The schema builder, and what an application sees of expired rows.
import "reflect-metadata";
import assert from "assert";
import { Column, DataSource, Entity, PrimaryColumn } from "typeorm";
import { Ttl1700000000000 } from "./1700000000000-ttl";
import { Cart } from "./cart";

@Entity("cart")
class Unknowing {
  @PrimaryColumn("integer")
  id!: number;

  @Column("text", { unique: true })
  owner!: string;
}

const source = (entity: Function) =>
  new DataSource({
    type: "postgres",
    url: process.env.DATABASE_URL,
    entities: [entity],
    migrations: [Ttl1700000000000],
    migrationsTransactionMode: "each",
  });

const wanted = async (db: DataSource) =>
  (await db.driver.createSchemaBuilder().log()).upQueries.map((query) => query.query);

async function main() {
  const unknowing = await source(Unknowing).initialize();
  // Names of constraints that are TypeORM's own.
  await unknowing.synchronize();
  assert.deepEqual(await wanted(unknowing), []);
  await unknowing.runMigrations();
  await unknowing.undoLastMigration();
  assert.deepEqual(await wanted(unknowing), [], "there and back");
  await unknowing.runMigrations();
  const drops = await wanted(unknowing);
  assert.ok(drops.some((query) => query.includes("DROP COLUMN")), drops.join("\n"));
  await assert.rejects(unknowing.synchronize(), { code: "2BP01" });
  await unknowing.destroy();

  const db = await source(Cart).initialize();
  assert.deepEqual(await wanted(db), [], "an entity that knows");

  const carts = db.getRepository(Cart);
  await carts.save([1, 2, 3, 4].map((id) => ({ id, owner: `user ${id}` })));
  await db.transaction(async (entities) => {
    await entities.query("SET LOCAL ttl.preserve_ts = on");
    await entities.query("UPDATE cart SET _ts = '2001-01-01' WHERE id <= 2");
  });
  assert.equal(await carts.count(), 2);
  assert.equal(await carts.findOneBy({ id: 1 }), null);
  await carts.save({ id: 1, owner: "user 1" });
  await carts.upsert({ id: 2, owner: "user 2", ttl: 60 }, ["id"]);
  assert.equal(await carts.count(), 4);
  await db.destroy();
}

main().then(() => console.log("ok: TypeORM"));
