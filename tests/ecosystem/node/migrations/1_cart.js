exports.up = (knex) =>
  knex.schema.createTable("cart", (table) => {
    table.integer("id").primary();
    table.text("owner").notNullable().unique();
  });
exports.down = (knex) => knex.schema.dropTable("cart");
