ActiveRecord.schema_format = :sql # config.active_record.schema_format in an application
ActiveRecord::Tasks::DatabaseTasks.structure_dump_flags = ["--no-comments"]
