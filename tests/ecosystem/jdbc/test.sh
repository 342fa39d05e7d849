# shellcheck shell=bash
# The JDBC driver of Debian. What a driver reads in pieces, and in what types seconds may be
# given, is in tests/e2e/tests/visibility/drivers.rs.
driver=/usr/share/java/postgresql.jar
command -v java >/dev/null && [ -f "$driver" ] || skip "no Java, or no libpostgresql-jdbc-java"
java -cp "$driver" Jdbc.java "jdbc:postgresql://$PGHOST:$PGPORT/$PGDATABASE"
expect_ttl cart
