//! ALTER EXTENSION … UPDATE makes what CREATE EXTENSION makes.

use std::collections::BTreeSet;

use ttl_ext_e2e::{Server, Session};

/// A list of privileges, in an order of its own.
fn privileges(acl: &str) -> String {
    format!(
        "(SELECT string_agg(concat_ws(' ', grantor::regrole, 'to',
                     CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, privilege_type, is_grantable),
                     ', ' ORDER BY grantee, privilege_type)
            FROM aclexplode({acl}))"
    )
}

/// What the catalogs say of all objects of a database that has the extension and nothing else. The
/// texts have no OIDs.
fn objects(session: &mut Session) -> BTreeSet<String> {
    let acl = privileges;
    let queries = [
        (
            "extension",
            "SELECT extname, extowner::regrole, extnamespace::regnamespace, extrelocatable, extversion, extconfig, extcondition
               FROM pg_extension WHERE oid >= 16384"
                .to_owned(),
        ),
        (
            "schema",
            format!("SELECT nspname, nspowner::regrole, {} FROM pg_namespace WHERE oid >= 16384", acl("nspacl")),
        ),
        (
            "function",
            format!(
                "SELECT oid::regprocedure, proowner::regrole, procost, prorows, {}, pg_get_functiondef(oid)
                   FROM pg_proc WHERE oid >= 16384",
                acl("proacl")
            ),
        ),
        (
            "relation",
            format!(
                "SELECT oid::regclass, relkind, relowner::regrole, reloptions, {}, pg_get_viewdef(oid)
                   FROM pg_class WHERE oid >= 16384",
                acl("relacl")
            ),
        ),
        (
            "column",
            format!(
                "SELECT attrelid::regclass, attnum, attname, format_type(atttypid, atttypmod), attnotnull, attisdropped, {}
                   FROM pg_attribute WHERE attrelid >= 16384 AND attnum > 0",
                acl("attacl")
            ),
        ),
        (
            "type",
            format!(
                "SELECT oid::regtype, typowner::regrole, typlen, typbyval, typtype, typcategory, typispreferred, typdelim,
                        typrelid::regclass, typelem::regtype, typarray::regtype, typinput, typoutput, typreceive, typsend,
                        typmodin, typanalyze, typalign, typstorage, typnotnull, typbasetype::regtype, {}
                   FROM pg_type WHERE oid >= 16384",
                acl("typacl")
            ),
        ),
        (
            "cast",
            "SELECT castsource::regtype, casttarget::regtype, castfunc::regprocedure, castcontext, castmethod
               FROM pg_cast WHERE oid >= 16384"
                .to_owned(),
        ),
        (
            "dependency",
            "SELECT pg_describe_object(classid, objid, objsubid), deptype, pg_describe_object(refclassid, refobjid, refobjsubid)
               FROM pg_depend WHERE objid >= 16384"
                .to_owned(),
        ),
        (
            "comment",
            "SELECT pg_describe_object(classoid, objoid, objsubid), description FROM pg_description WHERE objoid >= 16384"
                .to_owned(),
        ),
        (
            "initial privileges",
            format!(
                "SELECT pg_describe_object(classoid, objoid, objsubid), privtype, {} FROM pg_init_privs WHERE objoid >= 16384",
                acl("initprivs")
            ),
        ),
    ];
    let mut found = BTreeSet::new();
    for (kind, query) in queries {
        let rows = session.column(&query).into_iter();
        found.extend(rows.map(|row| format!("{kind} {row}")));
    }
    found
}

#[test]
fn the_same_objects() {
    let server = Server::start(&[]);
    let created = server.database("created");
    let updated = server.plain_database("updated");
    let mut session = updated.connect();
    session.run("CREATE EXTENSION ttl_ext VERSION '0.1.0'");
    let former = objects(&mut session);
    session.run("ALTER EXTENSION ttl_ext UPDATE");
    let updated = objects(&mut session);
    let created = objects(&mut created.connect());
    let missing: Vec<_> = created.difference(&updated).collect();
    let more: Vec<_> = updated.difference(&created).collect();
    assert!(
        missing.is_empty() && more.is_empty(),
        "after UPDATE, missing: {missing:#?}\nother than after CREATE: {more:#?}"
    );
    // The comparison sees differences, and objects of each kind.
    assert_ne!(former, created);
    for part in [
        "extension ttl_ext",
        "schema ttl",
        "function ttl.enable",
        "relation ttl.stats",
        "column ttl.stats",
        "type ttl.seconds",
        "cast ttl.seconds",
        "dependency function ttl.enable",
        "comment cast from ttl.seconds",
        "initial privileges view ttl.stats",
    ] {
        assert!(created.iter().any(|it| it.starts_with(part)), "no {part}");
    }
}

/// What others have made of the extension's objects stays: grants, and views that read its views.
#[test]
fn what_others_have_set_stays() {
    let server = Server::start(&[]);
    let database = server.plain_database("app");
    let mut session = database.connect();
    session.run(
        "CREATE EXTENSION ttl_ext VERSION '0.1.0';
         CREATE ROLE auditor;
         REVOKE SELECT ON ttl.tables FROM PUBLIC; GRANT SELECT ON ttl.tables, ttl.stats TO auditor;
         REVOKE EXECUTE ON FUNCTION ttl.purge(regclass) FROM PUBLIC;
         CREATE VIEW lag AS SELECT relation, lag, last_error FROM ttl.stats JOIN ttl.tables USING (relation);
         CREATE TABLE t (id integer); SELECT ttl.enable('t', 3600);
         PREPARE count AS SELECT count(*) FROM t;
         EXECUTE count;
         ALTER EXTENSION ttl_ext UPDATE",
    );
    let may = session.rows(
        "SELECT has_table_privilege('auditor', 'ttl.tables', 'SELECT'), has_table_privilege('auditor', 'ttl.stats', 'SELECT'),
                has_table_privilege('pg_monitor', 'ttl.tables', 'SELECT'),
                has_function_privilege('auditor', 'ttl.purge(regclass)', 'EXECUTE'),
                has_function_privilege('auditor', 'ttl.pause(regclass, timestamptz)', 'EXECUTE')",
    );
    assert_eq!(may, [["t", "t", "f", "f", "t"]]);
    assert_eq!(session.column("SELECT relation FROM lag"), ["t"]);
    session.run_preserving("INSERT INTO t (id, _ts) VALUES (1, now() - interval '1 day')");
    assert_eq!(session.value("EXECUTE count"), "0");
}
