base = ActiveRecord.respond_to?(:schema_format=) ? ActiveRecord : ActiveRecord::Base
base.schema_format = :sql
ActiveRecord::Tasks::DatabaseTasks.structure_dump_flags = ["--no-comments"]
