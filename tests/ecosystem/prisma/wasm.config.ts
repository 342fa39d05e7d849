// Prisma's engines as WebAssembly, and node-postgres for a driver: nothing is downloaded but by npm.
import { PrismaPg } from "@prisma/adapter-pg";
import pg from "pg";
import { defineConfig } from "prisma/config";

// The adapter has no columns of the type name, which catalogs have (prisma/orm#27403): text instead.
const [NAME, TEXT] = [19, 25];
const addFields = pg.Result.prototype.addFields;
pg.Result.prototype.addFields = function (fields) {
  for (const field of fields) if (field.dataTypeID === NAME) field.dataTypeID = TEXT;
  return addFields.call(this, fields);
};

export default defineConfig({
  schema: "schema.prisma",
  migrations: { path: "migrations" },
  experimental: { adapter: true },
  engine: "js",
  adapter: async () => new PrismaPg({ connectionString: process.env.DATABASE_URL }),
});
