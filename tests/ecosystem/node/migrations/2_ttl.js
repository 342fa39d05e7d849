exports.up = (knex) => knex.raw("SELECT ttl.enable('cart', '30 days')");
exports.down = (knex) => knex.raw("SELECT ttl.disable('cart', drop_columns => true)");
