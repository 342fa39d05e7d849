import { MigrationInterface, QueryRunner } from "typeorm";

export class Ttl1700000000000 implements MigrationInterface {
  async up(runner: QueryRunner) {
    await runner.query("SELECT ttl.enable('cart', '30 days', index => 'btree')");
    await runner.query("COMMENT ON COLUMN cart._ts IS NULL");
    await runner.query("COMMENT ON COLUMN cart.ttl IS NULL");
  }

  async down(runner: QueryRunner) {
    await runner.query("SELECT ttl.disable('cart', drop_columns => true)");
  }
}
