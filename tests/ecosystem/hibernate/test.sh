# shellcheck shell=bash
# Flyway and Hibernate, with the newest JDBC driver; by Maven.
command -v mvn >/dev/null && command -v javac >/dev/null || skip "no Maven, or no JDK"
install_once pom.xml mvn -q -B -Dmaven.repo.local="$TOOL_HOME/m2" dependency:copy-dependencies \
    -DoutputDirectory="$TOOL_HOME/lib" -DincludeScope=runtime
for jar in "$TOOL_HOME"/lib/{postgresql,flyway-core,hibernate-core}-*.jar; do
    jar=${jar##*/} jar=${jar%.jar}
    version_of "${jar%-*}" "${jar##*-}"
done
javac -cp "$TOOL_HOME/lib/*" ./*.java
java -cp "$TOOL_HOME/lib/*:." Checks "jdbc:postgresql://$PGHOST:$PGPORT/$PGDATABASE"
expect_ttl cart
