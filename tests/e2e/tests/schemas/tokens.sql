-- = Doorkeeper
-- Rails. created_at plus expires_in; a token without expires_in never expires, and a revoked one goes by its own date.
CREATE TABLE "oauth_applications" ("id" bigserial primary key, "name" character varying NOT NULL, "uid" character varying NOT NULL UNIQUE);
CREATE TABLE "oauth_access_tokens" ("id" bigserial primary key, "resource_owner_id" bigint, "application_id" bigint NOT NULL, "token" character varying NOT NULL, "refresh_token" character varying,
    "expires_in" integer, "scopes" character varying, "created_at" timestamp(6) NOT NULL, "revoked_at" timestamp(6),
    CONSTRAINT "fk_rails_732cb83ab7" FOREIGN KEY ("application_id") REFERENCES "oauth_applications" ("id"));
CREATE UNIQUE INDEX "index_oauth_access_tokens_on_token" ON "oauth_access_tokens" ("token");
CREATE UNIQUE INDEX "index_oauth_access_tokens_on_refresh_token" ON "oauth_access_tokens" ("refresh_token");
CREATE INDEX oauth_access_tokens_end ON oauth_access_tokens (LEAST(ttl.add_seconds(created_at, expires_in), revoked_at));
SELECT ttl.expire_index('oauth_access_tokens_end', 0, time_zone => 'UTC');
-- at 2026-10-01 10:00
INSERT INTO "oauth_applications" ("name", "uid") VALUES ('shop', 'u1');
INSERT INTO "oauth_access_tokens" ("resource_owner_id", "application_id", "token", "expires_in", "created_at") VALUES (7, 1, 't1', 1800, now()), (7, 1, 't2', 7200, now()), (8, 1, 'ever', NULL, now()), (9, 1, 'out', NULL, now());
-- left: oauth_access_tokens.token: ever out t1 t2
-- at 2026-10-01 11:00
SELECT "id" FROM "oauth_access_tokens" WHERE "oauth_access_tokens"."token" = 't1' LIMIT 1;   --> (no rows)
UPDATE "oauth_access_tokens" SET "revoked_at" = now() WHERE "token" = 'out' AND "revoked_at" IS NULL;
INSERT INTO "oauth_access_tokens" ("resource_owner_id", "application_id", "token", "expires_in", "created_at") VALUES (7, 1, 't1', 3600, now());
-- left: oauth_access_tokens.token: ever t1 t2
-- at 2026-10-01 12:30
DELETE FROM "oauth_access_tokens" WHERE "application_id" = 1 AND revoked_at IS NOT NULL;
-- left: oauth_access_tokens.token: ever
-- at 2026-10-31 12:00
-- left: oauth_access_tokens.token: ever

-- = Supabase Auth
-- Sessions with an end that may be NULL, and what refers to them by CASCADE; one-time tokens in timestamp of UTC.
CREATE TABLE users (id uuid PRIMARY KEY, email varchar(255));
CREATE TABLE sessions (id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE, created_at timestamptz, updated_at timestamptz, not_after timestamptz, refreshed_at timestamp);
CREATE TABLE refresh_tokens (id bigserial PRIMARY KEY, token varchar(255) UNIQUE, user_id varchar(255), revoked boolean, created_at timestamptz, updated_at timestamptz, parent varchar(255),
    session_id uuid REFERENCES sessions (id) ON DELETE CASCADE);
CREATE TABLE one_time_tokens (id uuid PRIMARY KEY, user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE, token_hash text NOT NULL CHECK (char_length(token_hash) > 0),
    created_at timestamp NOT NULL DEFAULT now(), updated_at timestamp NOT NULL DEFAULT now());
CREATE INDEX sessions_not_after_idx ON sessions (not_after DESC);
SELECT ttl.expire_index('sessions_not_after_idx', 0);
CREATE INDEX refresh_tokens_revoked ON refresh_tokens (updated_at) WHERE revoked;
SELECT ttl.expire_index('refresh_tokens_revoked', '1 day');
SELECT ttl.expire_after('one_time_tokens', 'created_at', '1 hour', time_zone => 'UTC');
-- at 2026-10-01 10:00
INSERT INTO users VALUES ('00000000-0000-0000-0000-000000000001', 'ada@example.com');
INSERT INTO sessions (id, user_id, created_at, updated_at, not_after) VALUES ('00000000-0000-0000-0000-00000000000a', '00000000-0000-0000-0000-000000000001', now(), now(), now() + interval '30 minutes'),
    ('00000000-0000-0000-0000-00000000000b', '00000000-0000-0000-0000-000000000001', now(), now(), NULL);
INSERT INTO refresh_tokens (token, revoked, created_at, updated_at, parent, session_id) VALUES ('r1', false, now(), now(), NULL, '00000000-0000-0000-0000-00000000000a'), ('r2', false, now(), now(), NULL, '00000000-0000-0000-0000-00000000000b');
INSERT INTO one_time_tokens (id, user_id, token_hash) VALUES (gen_random_uuid(), '00000000-0000-0000-0000-000000000001', 'h1');
-- left: sessions.right(id::text, 1): a b
-- left: refresh_tokens.token: r1 r2
-- left: one_time_tokens.token_hash: h1
-- at 2026-10-01 11:00
UPDATE refresh_tokens SET revoked = true, updated_at = now() WHERE token = 'r2' RETURNING token;                  --> r2
INSERT INTO refresh_tokens (token, revoked, created_at, updated_at, parent, session_id) SELECT 'r3', false, now(), now(), 'r2', id FROM sessions;
-- left: sessions.right(id::text, 1): b
-- disk: refresh_tokens.token: r2 r3
-- at 2026-10-02 10:30
-- disk: refresh_tokens.token: r2 r3
-- left: one_time_tokens.token_hash:
-- at 2026-10-04 10:30
-- left: refresh_tokens.token: r3
-- left: sessions.right(id::text, 1): b

-- = django-oauth-toolkit
-- Tokens in two tables that refer to each other, deferrable and without an action, as Django writes them. Both expire: an access
-- token with its refresh token, which may outlive it, so that the reference is the one thing that keeps it.
CREATE TABLE "oauth2_provider_accesstoken" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "token" text NOT NULL, "expires" timestamp with time zone NOT NULL,
    "scope" text NOT NULL, "source_refresh_token_id" bigint NULL UNIQUE, "token_checksum" varchar(64) NOT NULL UNIQUE);
CREATE TABLE "oauth2_provider_refreshtoken" ("id" bigint NOT NULL PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY, "token" varchar(255) NOT NULL, "access_token_id" bigint NULL UNIQUE,
    "created" timestamp with time zone NOT NULL, "revoked" timestamp with time zone NULL);
ALTER TABLE "oauth2_provider_accesstoken" ADD CONSTRAINT "access_source_fk" FOREIGN KEY ("source_refresh_token_id") REFERENCES "oauth2_provider_refreshtoken" ("id") DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE "oauth2_provider_refreshtoken" ADD CONSTRAINT "refresh_access_fk" FOREIGN KEY ("access_token_id") REFERENCES "oauth2_provider_accesstoken" ("id") DEFERRABLE INITIALLY DEFERRED;
SELECT ttl.expire_after('oauth2_provider_accesstoken', 'expires', 0);
SELECT ttl.expire_after('oauth2_provider_refreshtoken', 'created', '1 day');
-- at 2026-10-01 10:00
INSERT INTO "oauth2_provider_accesstoken" ("token", "expires", "scope", "token_checksum") VALUES ('a1', now() + interval '30 minutes', 'read', 'c1'), ('alone', now() + interval '30 minutes', 'read', 'c2');
INSERT INTO "oauth2_provider_refreshtoken" ("token", "access_token_id", "created") VALUES ('r1', 1, now());
-- left: oauth2_provider_accesstoken.token: a1 alone
-- at 2026-10-01 11:00
SELECT "token" FROM "oauth2_provider_accesstoken" WHERE "token_checksum" = 'c1';                 --> (no rows)
SELECT "token" FROM "oauth2_provider_refreshtoken" WHERE "token" = 'r1';                         --> r1
SELECT count(*) FROM "oauth2_provider_accesstoken";                                           --> 0
-- disk: oauth2_provider_accesstoken.token: a1
-- at 2026-10-01 12:30
UPDATE "oauth2_provider_refreshtoken" SET "access_token_id" = NULL, "revoked" = now() WHERE "id" = 1;
-- left: oauth2_provider_accesstoken.token:
-- left: oauth2_provider_refreshtoken.token: r1
-- at 2026-10-04 10:30
-- left: oauth2_provider_refreshtoken.token:

-- = JWT in jsonb
CREATE TABLE tokens (jti uuid PRIMARY KEY DEFAULT gen_random_uuid(), claims jsonb NOT NULL CHECK (jsonb_typeof(claims->'exp') IN ('number', 'null') OR NOT claims ? 'exp'));
CREATE UNIQUE INDEX tokens_sub ON tokens ((claims->>'sub'));
CREATE INDEX tokens_exp ON tokens (ttl.from_epoch((claims->>'exp')::float8));
SELECT ttl.expire_index('tokens_exp', 0);
-- at 2026-10-01 10:00
INSERT INTO tokens (claims) SELECT jsonb_build_object('sub', s, 'exp', extract(epoch FROM now())::bigint + e) FROM (VALUES ('a', 1800), ('b', 100000), ('c', NULL)) AS t (s, e);
INSERT INTO tokens (claims) VALUES ('{"sub": "d"}');
-- left: tokens.claims->>'sub': a b c d
-- at 2026-10-01 11:00
SELECT claims->>'sub' FROM tokens WHERE claims @> '{"sub": "a"}';                             --> (no rows)
INSERT INTO tokens (claims) VALUES (jsonb_build_object('sub', 'a', 'exp', extract(epoch FROM now()) + 0.5));
-- at 2026-10-01 12:30
-- left: tokens.claims->>'sub': b c d
-- at 2026-10-04 10:30
-- left: tokens.claims->>'sub': c d
