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

/// The versions with an upgrade path to this one: those that have been published.
fn former_versions(session: &mut Session) -> Vec<String> {
    session.column(
        "SELECT source FROM pg_available_extensions, pg_extension_update_paths(name)
          WHERE name = 'ttl_ext' AND target = default_version AND path IS NOT NULL ORDER BY 1",
    )
}

#[test]
fn the_same_objects() {
    let server = Server::start(&[]);
    let database = server.database("created");
    let mut session = database.connect();
    let created = objects(&mut session);
    for version in former_versions(&mut session) {
        let database = server.plain_database(&format!("from_{}", version.replace('.', "_")));
        let mut session = database.connect();
        session.run(&format!("CREATE EXTENSION ttl_ext VERSION '{version}'"));
        session.run("ALTER EXTENSION ttl_ext UPDATE");
        let updated = objects(&mut session);
        let missing: Vec<_> = created.difference(&updated).collect();
        let more: Vec<_> = updated.difference(&created).collect();
        assert!(
            missing.is_empty() && more.is_empty(),
            "after UPDATE from {version}, missing: {missing:#?}\nother than after CREATE: {more:#?}"
        );
    }
    // The comparison has objects of each kind, and sees differences.
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
    session.run("ALTER FUNCTION ttl.purge(regclass) COST 2");
    assert_ne!(objects(&mut session), created);
}
