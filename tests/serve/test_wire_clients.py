"""PostgreSQL's clients against this server, where they are installed.

psql, asyncpg, SQLAlchemy with psycopg and pg8000, Java, node, R, ODBC, DuckDB's extension, ADBC, and Superset. Four are
found by an environment variable: PGJDBC names Java's driver, SUPERSET a Python that has apache-superset,
PGDUCKDB one that has duckdb and duckdb-extension-postgres-scanner, and PGADBC one with adbc-driver-postgresql.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import asyncpg
import pandas
import pytest
import sqlalchemy
from serving import Served

from support import PATIENCE

TABLE = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
JAVA = Path(os.environ.get("PGJDBC", "/usr/share/java/postgresql.jar"))


@pytest.fixture
def rows(lasting: Served) -> list[tuple[Any, ...]]:
    """What HTTP answers to TABLE."""
    return [tuple(row) for row in lasting.ask(TABLE.replace("people", "data"))["rows"]]


def run(lasting: Served, *command: str, text: str | None = None, **more: str) -> str:
    env = {**os.environ, "PGHOST": "127.0.0.1", "PGPORT": str(lasting.wire), "PGUSER": "ana", "PGDATABASE": "people"}
    env |= {"PGPASSWORD": lasting.keys["ana"], "PGCONNECT_TIMEOUT": str(PATIENCE), **more}
    done = subprocess.run(command, env=env, input=text, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql(lasting: Served, rows: list[tuple[Any, ...]], tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    commands = [r"\d", r"\dt", r"\d people", r"\d+ people", r"\l", r"\dn", r"\du", r"\df", r"\dv", TABLE]
    copy = rf"\copy ({TABLE}) to '{file}' csv header"
    shown = run(lasting, "psql", "-X", *(part for one in [*commands, copy] for part in ("-c", one)))
    for words in (
        "public | people | table | tacit",
        "age    | bigint",
        "takes 0 to 99, in 10 bins",
        "(2 rows)",
        "COPY 2",
    ):
        assert words in shown
    assert file.read_text() == "sex,n\n" + "".join(f"{sex},{n:g}\n" for sex, n in rows)


def test_asyncpg(lasting: Served, rows: list[tuple[Any, ...]]) -> None:
    async def ask() -> None:
        given = {"host": "127.0.0.1", "port": lasting.wire, "user": "ana", "database": "people"}
        client = await asyncpg.connect(password=lasting.keys["ana"], **given)
        try:
            assert [tuple(row) for row in await client.fetch(TABLE)] == rows
            one = await client.fetchrow("SELECT COUNT(*) FROM people WHERE sex = $1 AND age >= $2", "F", 20)
            assert one["count"] == lasting.ask("SELECT COUNT(*) FROM data WHERE sex = 'F' AND age >= 20")["value"]
            async with client.transaction():
                cursor = await client.cursor("SELECT age, COUNT(*) FROM people GROUP BY age")
                assert [len(await cursor.fetch(4)) for _ in range(3)] == [4, 4, 2]
            with pytest.raises(asyncpg.PostgresError, match="rows are never shown"):
                await client.fetch("SELECT age FROM people")
            assert await client.fetchval("SELECT count(*) FROM pg_class WHERE relname = $1", "people") == 1
        finally:
            await client.close()

    asyncio.run(ask())


@pytest.mark.parametrize("driver", ["psycopg", "pg8000"])
def test_sqlalchemy_and_pandas(lasting: Served, rows: list[tuple[Any, ...]], driver: str) -> None:
    pytest.importorskip(driver, reason=f"{driver} is not installed")
    address = f"postgresql+{driver}://ana:{lasting.keys['ana']}@127.0.0.1:{lasting.wire}/people"
    engine = sqlalchemy.create_engine(address)
    try:
        known = sqlalchemy.MetaData()
        known.reflect(engine)
        people = known.tables["people"]
        assert [(c.name, str(c.type)) for c in people.columns] == [
            ("sex", "TEXT"), ("age", "BIGINT"), ("active", "BOOLEAN"), ("pay", "DOUBLE PRECISION"),
        ]  # fmt: skip
        assert people.c.age.comment == "takes 0 to 99, in 10 bins"
        counted = sqlalchemy.select(people.c.sex, sqlalchemy.func.count().label("n")).group_by(people.c.sex)
        frame = pandas.read_sql(counted.where(people.c.age >= 20, people.c.sex.in_(["F", "M"])), engine)
        assert list(frame.columns) == ["sex", "n"]
        assert frame.n.dtype == float
        assert list(pandas.read_sql(TABLE, engine).itertuples(index=False, name=None)) == rows
    finally:
        engine.dispose()


PROGRAM = """
import java.sql.*;
public class Ask {
  public static void main(String[] a) throws Exception {
    try (Connection c = DriverManager.getConnection(a[0], a[1], a[2])) {
      try (ResultSet r = c.getMetaData().getColumns(null, "public", "people", "%")) {
        while (r.next()) System.out.println(r.getString(4) + " " + r.getString(6));
      }
      DatabaseMetaData m = c.getMetaData();  // what Metabase, DBeaver and others ask first
      ResultSet[] asked = {
        m.getSchemas(), m.getTables(null, "public", "%", new String[] {"TABLE", "VIEW", "PARTITIONED TABLE"}),
        m.getPrimaryKeys(null, "public", "people"), m.getImportedKeys(null, "public", "people"),
        m.getIndexInfo(null, "public", "people", false, true), m.getTypeInfo(), m.getCatalogs(), m.getTableTypes()
      };
      int[] counts = new int[asked.length];
      for (int i = 0; i < asked.length; i++) while (asked[i].next()) counts[i]++;
      System.out.println(counts[0] + " " + counts[1] + " " + counts[2] + " " + counts[3] + " " + counts[4]);
      System.out.println(!m.getSQLKeywords().isEmpty() + " " + (counts[5] > 20));
      c.setReadOnly(true);
      c.setAutoCommit(false);
      for (int i = 0; i < 7; i++)  // from the sixth time on the driver prepares it, and takes binary
        try (PreparedStatement s = c.prepareStatement(a[3])) {
          s.setFetchSize(1);  // which makes it a portal
          s.setInt(1, 0);
          try (ResultSet r = s.executeQuery()) {
            while (r.next()) System.out.println(r.getString(1) + " " + r.getDouble(2));
          }
        }
    }
  }
}
"""


@pytest.mark.skipif(shutil.which("java") is None or not JAVA.exists(), reason="Java's driver is not installed")
def test_java(lasting: Served, rows: list[tuple[Any, ...]], tmp_path: Path) -> None:
    (tmp_path / "Ask.java").write_text(PROGRAM)
    address = f"jdbc:postgresql://127.0.0.1:{lasting.wire}/people"
    asked = TABLE.replace("GROUP", "WHERE age >= ? GROUP")
    shown = run(
        lasting, "java", "-cp", str(JAVA), str(tmp_path / "Ask.java"), address, "ana", lasting.keys["ana"], asked
    )
    assert shown.splitlines()[:4] == ["sex text", "age int8", "active bool", "pay float8"]
    assert shown.splitlines()[4:6] == ["4 1 0 0 0", "true true"]
    assert shown.splitlines()[6:] == [f"{sex} {n}" for sex, n in rows] * 7


SCRIPT = """
const { Client } = require('pg');
(async () => {
  const client = new Client(); await client.connect();
  const found = await client.query('SELECT sex, COUNT(*) AS n FROM people WHERE age >= $1 GROUP BY sex', [0]);
  console.log(JSON.stringify(found.rows)); await client.end();
})();
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_node(lasting: Served, rows: list[tuple[Any, ...]]) -> None:
    if subprocess.run(["node", "-e", "require('pg')"], capture_output=True).returncode:
        pytest.skip("node's pg is not installed")
    shown = run(lasting, "node", "-e", SCRIPT)
    assert shown.strip() == str([{"sex": sex, "n": int(n)} for sex, n in rows]).replace("'", '"').replace(" ", "")


STATISTICS = """
library(DBI)
driver <- if (requireNamespace("RPostgres", quietly = TRUE)) RPostgres::Postgres() else RPostgreSQL::PostgreSQL()
con <- dbConnect(driver, host = "127.0.0.1", port = as.integer(Sys.getenv("PGPORT")), user = "ana",
                 password = Sys.getenv("PGPASSWORD"), dbname = "people")
cat(dbExistsTable(con, "people"), dbListFields(con, "people"), "\\n")
counted <- dbGetQuery(con, "SELECT sex, COUNT(*) AS n FROM people WHERE age >= $1 GROUP BY sex", list(0))
cat(paste(counted$sex, counted$n), sep = "\\n")
dbDisconnect(con)
"""


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_r(lasting: Served, rows: list[tuple[Any, ...]]) -> None:
    has = 'quit(status = !any(sapply(c("RPostgres", "RPostgreSQL"), requireNamespace, quietly = TRUE)))'
    if subprocess.run(["Rscript", "-e", has], capture_output=True).returncode:
        pytest.skip("neither RPostgres nor RPostgreSQL is installed")
    shown = run(lasting, "Rscript", "-e", STATISTICS).splitlines()
    assert shown[0].split() == ["TRUE", "sex", "age", "active", "pay"]
    assert shown[1:3] == [f"{sex} {n:g}" for sex, n in rows]


DUCKDB = """
import os, pathlib, duckdb, duckdb_extension_postgres_scanner as extension
(file,) = pathlib.Path(extension.__path__[0]).rglob("*.duckdb_extension")
engine = duckdb.connect(config={"allow_unsigned_extensions": "true"})
engine.execute(f"LOAD '{file}'")
engine.execute(f"ATTACH 'host=127.0.0.1 port={os.environ['PGPORT']} dbname=people' AS t (TYPE postgres, READ_ONLY)")
print(engine.execute("SHOW ALL TABLES").fetchall()[0][3])
asked = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
print(engine.execute("SELECT * FROM postgres_query('t', ?)", [asked]).fetchall())
try:
    engine.execute("SELECT COUNT(*) FROM t.people")
except duckdb.Error as error:
    print("rows are never shown" in str(error))
"""


@pytest.mark.skipif("PGDUCKDB" not in os.environ, reason="PGDUCKDB names no Python with DuckDB's extension")
def test_duckdb(lasting: Served, rows: list[tuple[Any, ...]]) -> None:
    shown = run(lasting, os.environ["PGDUCKDB"], "-c", DUCKDB).splitlines()
    assert shown == ["['sex', 'age', 'active', 'pay']", str(rows), "True"]


ADBC = """
import os
from adbc_driver_postgresql import dbapi
address = "postgresql://ana:{PGPASSWORD}@127.0.0.1:{PGPORT}/people".format_map(os.environ)
with dbapi.connect(address, autocommit=True) as client, client.cursor() as cursor:
    print([field.type for field in client.adbc_get_table_schema("people")])
    cursor.execute("SELECT sex, COUNT(*) AS n FROM people WHERE age >= $1 GROUP BY sex", (0,))
    print([tuple(row.values()) for row in cursor.fetch_arrow_table().to_pylist()])
    listed = client.adbc_get_objects(depth="tables").read_all().to_pylist()
    (schemas,) = [one["catalog_db_schemas"] for one in listed if one["catalog_db_schemas"]]
    print([table["table_name"] for table in schemas[0]["db_schema_tables"]])
"""


@pytest.mark.skipif("PGADBC" not in os.environ, reason="PGADBC names no Python with ADBC's driver")
def test_adbc(lasting: Served, rows: list[tuple[Any, ...]]) -> None:
    shown = run(lasting, os.environ["PGADBC"], "-c", ADBC).splitlines()
    types = "[DataType(string), DataType(int64), DataType(bool), DataType(double)]"
    assert shown == [types, str(rows), "['people']"]


SUPERSET = """
import os, pathlib, sys
settings = pathlib.Path(sys.argv[1]) / "superset_config.py"
settings.write_text(f"SECRET_KEY = {'x' * 42!r}\\nSQLALCHEMY_DATABASE_URI = 'sqlite://'\\n")
os.environ["SUPERSET_CONFIG_PATH"] = str(settings)
from superset.app import create_app
with create_app().app_context():
    from superset.models.core import Database
    from superset.sql.parse import Table
    database = Database(database_name="t")
    database.set_sqlalchemy_uri(f"postgresql://ana:{os.environ['PGPASSWORD']}@127.0.0.1:{os.environ['PGPORT']}/people")
    spec, people = database.db_engine_spec, Table("people", "public")
    with database.get_inspector() as inspector:
        print(spec.get_table_names(database, inspector, "public"), spec.get_view_names(database, inspector, "public"))
        print([(one["column_name"], str(one["type"])) for one in spec.get_columns(inspector, people)])
    with database.get_raw_connection() as connection:
        asked = "SELECT COUNT(*) FROM people WHERE age < 30 AND pay < 10"
        print(sorted(spec.estimate_statement_cost(database, asked, connection.cursor())))
    asked = "SELECT sex AS sex, COUNT(*) AS n FROM public.people GROUP BY sex LIMIT 1000"
    frame = database.get_df(asked, schema="public")
    print(list(frame.itertuples(index=False, name=None)))
"""


@pytest.mark.skipif("SUPERSET" not in os.environ, reason="SUPERSET names no Python with apache-superset")
def test_superset(lasting: Served, rows: list[tuple[Any, ...]], tmp_path: Path) -> None:
    shown = run(lasting, os.environ["SUPERSET"], "-c", SUPERSET, str(tmp_path)).splitlines()[-4:]
    columns = [("sex", "TEXT"), ("age", "BIGINT"), ("active", "BOOLEAN"), ("pay", "DOUBLE_PRECISION")]
    assert shown == ["{'people'} set()", str(columns), "['Start-up cost', 'Total cost']", str(rows)]


@pytest.mark.skipif(shutil.which("isql") is None, reason="unixODBC is not installed")
def test_odbc(lasting: Served, rows: list[tuple[Any, ...]]) -> None:
    driver = "PostgreSQL Unicode"
    if f"[{driver}]" not in subprocess.run(["odbcinst", "-q", "-d"], capture_output=True, text=True).stdout:
        pytest.skip("psqlODBC is not installed")
    given = f"Driver={driver};Server=127.0.0.1;Port={lasting.wire};Database=people;UID=ana;PWD={lasting.keys['ana']}"
    shown = run(lasting, "isql", "-k", "-b", "-d,", given, text=f"{TABLE}\n").splitlines()
    assert [line.split(",") for line in shown[:2]] == [[sex, f"{n:g}"] for sex, n in rows]
