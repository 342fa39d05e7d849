import { sql } from "drizzle-orm";
import { check, index, integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";

export const cart = pgTable(
  "cart",
  {
    id: integer().primaryKey(),
    owner: text().notNull().unique(),
    ts: timestamp("_ts", { withTimezone: true }).notNull().default(sql`ttl.current_ts()`),
    ttl: integer(),
  },
  () => [
    index("cart_expiry_key_idx").using("btree", sql`ttl.expiry_key(_ts, ttl)`),
    check("cart_ttl_check", sql`ttl.is_override(ttl) IS NOT FALSE`),
  ],
);
