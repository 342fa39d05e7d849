# Migrations, structure.sql, and what an application sees of expired rows.
require "active_record"
require "stringio"
require_relative "schema_format"

class Cart < ActiveRecord::Base; end

def check(holds, what)
  raise "FAILED: #{what}" unless holds
  puts "ok: #{what}"
end

ActiveRecord::Base.establish_connection(ENV.fetch("DATABASE_URL"))
puts "VERSION activerecord #{ActiveRecord.version}"
migrations =
  if ActiveRecord.version < Gem::Version.new("7.2")
    ActiveRecord::MigrationContext.new("db/migrate", ActiveRecord::Base.connection.schema_migration)
  else
    ActiveRecord::MigrationContext.new("db/migrate")
  end
migrations.migrate
migrations.rollback
check((Cart.reset_column_information; Cart.column_names) == %w[id owner items], "there and back")
migrations.migrate
Cart.reset_column_information

6.times { |n| Cart.create!(id: n + 1, owner: "user #{n + 1}") }
held = Cart.find(2)
Cart.transaction do
  Cart.connection.execute("SET LOCAL ttl.preserve_ts = on")
  Cart.connection.execute("UPDATE carts SET _ts = '2001-01-01' WHERE id <= 3")
end
check(Cart.count == 3, "expired rows are hidden")
check(Cart.find_by(id: 1).nil?, "by key, too")
Cart.create!(id: 1, owner: "user 1")
Cart.upsert({ id: 3, owner: "user 3", items: 3 }, unique_by: :id)
check(Cart.count == 5, "their keys are free")
check(!Cart.where(id: held.id).exists? && Cart.where(id: held.id).update_all(items: 9).zero?, "and not written")

begin
  source = ActiveRecord.version < Gem::Version.new("7.2") ? ActiveRecord::Base.connection : ActiveRecord::Base.connection_pool
  ActiveRecord::SchemaDumper.dump(source, schema = StringIO.new)
  puts "schema.rb: #{schema.string[/^  create_table "carts".*?^  end/m] || "cannot dump carts: #{schema.string[/Could not.*/]}"}"
rescue StandardError => error
  puts "schema.rb: #{error.class}: #{error.message}"
end

# structure.sql has the policy with the table, for the database of tests.
tasks = ActiveRecord::Tasks::DatabaseTasks
tasks.root = Dir.pwd
tasks.env = "test"
from = ActiveRecord::Base.connection_db_config
tasks.structure_dump(from, "structure.sql")
to = ActiveRecord::DatabaseConfigurations::UrlConfig.new("test", "primary", ENV.fetch("DATABASE_URL") + "_test")
tasks.structure_load(to, "structure.sql")
puts "ok: structure.sql"
