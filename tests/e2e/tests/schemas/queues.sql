-- = Oban
-- Elixir. A job's time of retention depends on its state; times are UTC without a zone.
CREATE TYPE oban_job_state AS ENUM ('available', 'scheduled', 'executing', 'retryable', 'completed', 'discarded', 'cancelled');
CREATE TABLE oban_jobs (id bigserial PRIMARY KEY, state oban_job_state NOT NULL DEFAULT 'available', queue text NOT NULL DEFAULT 'default', worker text NOT NULL,
    args jsonb NOT NULL DEFAULT '{}', attempt integer NOT NULL DEFAULT 0, inserted_at timestamp NOT NULL DEFAULT timezone('UTC', now()),
    scheduled_at timestamp NOT NULL DEFAULT timezone('UTC', now()), attempted_at timestamp, completed_at timestamp, cancelled_at timestamp, discarded_at timestamp);
CREATE INDEX ON oban_jobs (state, queue, scheduled_at, id);
CREATE INDEX oban_jobs_gone ON oban_jobs ((CASE state WHEN 'completed' THEN completed_at WHEN 'cancelled' THEN cancelled_at WHEN 'discarded' THEN discarded_at END));
SELECT ttl.expire_index('oban_jobs_gone', '1 day', time_zone => 'UTC');
-- at 2026-10-01 10:00
INSERT INTO oban_jobs (worker) SELECT 'Mailer' FROM generate_series(1, 4);
WITH subset AS MATERIALIZED (SELECT id FROM oban_jobs WHERE state = 'available' AND queue = 'default' ORDER BY scheduled_at, id LIMIT 3 FOR UPDATE SKIP LOCKED)
    UPDATE oban_jobs AS o SET state = 'executing', attempted_at = timezone('UTC', now()), attempt = attempt + 1 FROM subset AS s WHERE o.id = s.id;
UPDATE oban_jobs SET state = 'completed', completed_at = timezone('UTC', now()) WHERE id = 1;
UPDATE oban_jobs SET state = 'discarded', discarded_at = timezone('UTC', now()) WHERE id = 2;
-- left: oban_jobs.id: 1 2 3 4
-- at 2026-10-01 11:00
UPDATE oban_jobs SET state = 'available', discarded_at = NULL WHERE id = 2;
-- left: oban_jobs.id: 1 2 3 4
-- at 2026-10-02 10:30
SELECT state, count(*) FROM oban_jobs GROUP BY state ORDER BY state;
--> available | 2
--> executing | 1
-- left: oban_jobs.id: 2 3 4
-- at 2026-10-31 12:00
-- left: oban_jobs.id: 2 3 4

-- = pg-boss
-- Node.js. Each job has its own time of retention, on partitions by the queue.
CREATE TYPE job_state AS ENUM ('created', 'retry', 'active', 'completed', 'cancelled', 'failed');
CREATE TABLE job (id uuid NOT NULL DEFAULT gen_random_uuid(), name text NOT NULL, data jsonb, state job_state NOT NULL DEFAULT 'created', start_after timestamptz NOT NULL DEFAULT now(),
    created_on timestamptz NOT NULL DEFAULT now(), started_on timestamptz, completed_on timestamptz, keep_until timestamptz NOT NULL DEFAULT now() + interval '14 days',
    singleton_key text) PARTITION BY LIST (name);
ALTER TABLE job ADD PRIMARY KEY (name, id);
CREATE TABLE job_mail PARTITION OF job FOR VALUES IN ('mail');
CREATE UNIQUE INDEX job_mail_singleton ON job_mail (name, singleton_key) WHERE state < 'completed';
CREATE TABLE job_other PARTITION OF job DEFAULT;
SELECT ttl.expire_after('job', 'keep_until', 0);
-- at 2026-10-01 10:00
INSERT INTO job (name, data, singleton_key, keep_until) VALUES ('mail', '1', 'only', now() + interval '30 minutes'), ('mail', '2', NULL, now() + interval '7 days'), ('scan', '3', NULL, now() + interval '30 minutes');
-- left: job.data: 1 2 3
-- at 2026-10-01 11:00
INSERT INTO job (name, data, singleton_key) VALUES ('mail', '4', 'only') ON CONFLICT DO NOTHING RETURNING data;   --> 4
WITH next AS (SELECT id FROM job WHERE name = 'mail' AND state < 'active' AND start_after < now() ORDER BY created_on LIMIT 5 FOR UPDATE SKIP LOCKED)
    UPDATE job j SET state = 'active', started_on = now() FROM next WHERE j.name = 'mail' AND j.id = next.id RETURNING j.data;
--> 2
--> 4
UPDATE job SET state = 'completed', completed_on = now() WHERE name = 'mail' AND data = '2';
-- left: job.data: 2 4
-- at 2026-10-31 12:00
-- left: job.data:

-- = Rails Solid Queue
-- Executions refer to jobs by ON DELETE CASCADE; finished jobs stay for a day.
CREATE TABLE "solid_queue_jobs" ("id" bigserial primary key, "queue_name" character varying NOT NULL, "class_name" character varying NOT NULL, "arguments" text, "priority" integer DEFAULT 0 NOT NULL,
    "active_job_id" character varying, "scheduled_at" timestamp(6), "finished_at" timestamp(6), "concurrency_key" character varying, "created_at" timestamp(6) NOT NULL, "updated_at" timestamp(6) NOT NULL);
CREATE INDEX "index_solid_queue_jobs_on_finished_at" ON "solid_queue_jobs" ("finished_at");
CREATE TABLE "solid_queue_ready_executions" ("id" bigserial primary key, "job_id" bigint NOT NULL, "queue_name" character varying NOT NULL, "priority" integer DEFAULT 0 NOT NULL, "created_at" timestamp(6) NOT NULL,
    CONSTRAINT "fk_rails_81fcbd66af" FOREIGN KEY ("job_id") REFERENCES "solid_queue_jobs" ("id") ON DELETE CASCADE);
CREATE UNIQUE INDEX "index_solid_queue_ready_executions_on_job_id" ON "solid_queue_ready_executions" ("job_id");
SELECT ttl.expire_after('solid_queue_jobs', 'finished_at', '1 day', time_zone => 'UTC');
-- at 2026-10-01 10:00
INSERT INTO "solid_queue_jobs" ("queue_name", "class_name", "created_at", "updated_at") SELECT 'default', 'MailJob', now(), now() FROM generate_series(1, 3) RETURNING "id";
INSERT INTO "solid_queue_ready_executions" ("job_id", "queue_name", "created_at") SELECT id, queue_name, now() FROM "solid_queue_jobs";
DELETE FROM "solid_queue_ready_executions" WHERE "job_id" = 1;
UPDATE "solid_queue_jobs" SET "finished_at" = now(), "updated_at" = now() WHERE "id" = 1;
UPDATE "solid_queue_jobs" SET "finished_at" = now(), "updated_at" = now() WHERE "id" = 2;
-- left: solid_queue_jobs.id: 1 2 3
-- at 2026-10-02 10:30
-- left: solid_queue_jobs.id: 3
-- disk: solid_queue_ready_executions.job_id: 3

-- = django-celery-results
CREATE TABLE "django_celery_results_taskresult" ("id" integer NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "task_id" varchar(255) NOT NULL UNIQUE, "status" varchar(50) NOT NULL,
    "result" text NULL, "date_created" timestamp with time zone NOT NULL, "date_done" timestamp with time zone NOT NULL);
CREATE INDEX "django_celery_results_date_done" ON "django_celery_results_taskresult" ("date_done");
SELECT ttl.expire_after('django_celery_results_taskresult', 'date_done', '1 day');
-- at 2026-10-01 10:00
INSERT INTO "django_celery_results_taskresult" ("task_id", "status", "date_created", "date_done") VALUES ('t1', 'PENDING', now(), now()), ('t2', 'PENDING', now(), now());
-- left: django_celery_results_taskresult.task_id: t1 t2
-- at 2026-10-01 11:00
UPDATE "django_celery_results_taskresult" SET "status" = 'SUCCESS', "result" = '"ok"', "date_done" = now() WHERE "task_id" = 't1';
-- left: django_celery_results_taskresult.task_id: t1 t2
-- at 2026-10-02 10:30
SELECT "status" FROM "django_celery_results_taskresult" WHERE "task_id" = 't2';               --> (no rows)
INSERT INTO "django_celery_results_taskresult" ("task_id", "status", "date_created", "date_done") VALUES ('t2', 'STARTED', now(), now());
-- left: django_celery_results_taskresult.task_id: t1 t2
-- at 2026-10-04 10:30
-- left: django_celery_results_taskresult.task_id:
