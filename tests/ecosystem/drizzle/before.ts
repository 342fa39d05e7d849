import { integer, pgTable, text } from "drizzle-orm/pg-core";

export const cart = pgTable("cart", {
  id: integer().primaryKey(),
  owner: text().notNull().unique(),
});
