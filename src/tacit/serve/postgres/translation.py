"""A look into the catalogues in DuckDB's words: an allow-list of tables and functions, translated by sqlglot. Pure.

Nothing is matched as text: a statement is read into a tree, and what is in the tree and not on the lists is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, cast

from sqlglot import TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError, SqlglotError

from tacit.model.sql.reading import start_of, stripped
from tacit.serve.postgres.select import Bounded, title
from tacit.serve.postgres.sqlstate import NO_FUNCTION, NO_TABLE, SYNTAX, UNSUPPORTED, WireError
from tacit.serve.postgres.types import NAMED, TEXT, WireValue

MAX_CATALOGUE_TEXT = 20_000  # characters of a statement about catalogues
_KEYWORDS = "pg_get_keywords"  # a function without arguments, whose rows are a table here
SCHEMAS = {"pg_catalog": "pg", "information_schema": "information", "tacit": "tacit"}
_TABLE_FUNCTIONS = ("unnest", "generate_series")
# Called as pg_catalog.lower(…) these are no functions that the parser knows.
_PLAIN = (
    "array_to_string", "array_agg", "array_position", "bool_and", "bool_or", "coalesce", "concat", "concat_ws", "count",
    "length", "lower", "ltrim", "max", "md5", "min", "now", "replace", "row_number", "rtrim", "split_part",
    "string_agg", "substr", "substring", "sum", "trim", "upper",
)  # fmt: skip
# What is computed from the catalogues' own values. Functions that make large values of small ones are not among them.
_FUNCTIONS = (
    exp.And, exp.Or, exp.Xor, exp.Not, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Cast, exp.TryCast,
    exp.Exists, exp.Any, exp.All, exp.Array, exp.ArrayAgg, exp.ArrayConcat, exp.ArrayToString, exp.ArraySize,
    exp.ArrayContains, exp.ArrayContainsAll, exp.ArrayOverlaps, exp.GroupConcat, exp.Count, exp.Min, exp.Max,
    exp.Sum, exp.Avg, exp.LogicalAnd, exp.LogicalOr, exp.RowNumber, exp.Rank, exp.DenseRank, exp.First, exp.Last,
    exp.Concat, exp.ConcatWs, exp.Lower, exp.Upper, exp.Length, exp.Substring, exp.Replace, exp.StrPosition,
    exp.SplitPart, exp.Trim, exp.Left, exp.Right, exp.Initcap, exp.StartsWith, exp.RegexpLike, exp.RegexpILike,
    exp.RegexpReplace, exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Greatest, exp.Least, exp.Mod, exp.Extract,
    exp.TimeToStr, exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.Unnest, exp.GenerateSeries,
    exp.ExplodingGenerateSeries, exp.Explode, exp.MD5, exp.StringToArray, exp.Anonymous,
)  # fmt: skip
_AS_TEXT = ("name", "bpchar", "json", "varchar", "text")  # types that are the engine's VARCHAR
_ELEMENTS = {"oid": "UINTEGER", "regclass": "UINTEGER", "int2": "SMALLINT", "smallint": "SMALLINT"}
# Columns that name a function. In PostgreSQL 0 is none, and is written "-".
_FUNCTION_NAMES = ("typinput", "typoutput", "typreceive", "typsend")
_IN_ORDER = {"pg_attribute": "attnum", "columns": "ordinal_position"}
_WORDS = (  # that name a column after AS
    TokenType.SELECT, TokenType.UPDATE, TokenType.INSERT, TokenType.DELETE, TokenType.TABLE, TokenType.SCHEMA,
    TokenType.FROM,
)  # fmt: skip
_STATEMENTS = (exp.Select, exp.SetOperation, exp.Values, exp.Subquery)
_ENGINE = ("duckdb_", "sqlite_", "pragma_", "pg_")  # how names of the engine's own tables begin
_NEVER = (exp.Into, exp.DML, exp.DDL, exp.Command, exp.Parameter, exp.Placeholder, exp.SessionParameter)


class Caller(NamedTuple):
    """Whose statement it is, for what is not the same for everybody."""

    user: str
    database: str
    process: int
    settings: Mapping[str, str]


class CatalogueNames(NamedTuple):
    """What there is in the catalogues: tables by their schemas here, and functions."""

    tables: Mapping[str, Collection[str]]
    functions: Collection[str]
    datasets: Collection[str]


class _CatalogueParser(Bounded, Postgres.Parser):  # type: ignore[misc, valid-type]  # made by a metaclass
    pass


def parsed(text: str) -> exp.Expr:
    """The tree of one statement that reads."""
    if len(text) > MAX_CATALOGUE_TEXT:
        raise WireError(SYNTAX, f"a statement about catalogues has at most {MAX_CATALOGUE_TEXT:,} characters.")
    try:
        dialect = Postgres()
        tokens = list(dialect.tokenize(text))
        for before, token in pairwise(tokens):
            table = before.token_type == TokenType.DOT and token.token_type == TokenType.VALUES  # tacit.values
            if table or (before.token_type == TokenType.ALIAS and token.token_type in _WORDS):
                token.token_type = TokenType.VAR
        found = [one for one in _CatalogueParser(dialect=dialect).parse(tokens, text) if one]
    except ParseError as error:
        raise WireError(SYNTAX, "the statement cannot be read.", at=_wrong_at(error, text)) from None
    except Exception:  # text on which the parser itself fails, with whatever error, is a statement that cannot be read
        raise WireError(SYNTAX, "the statement cannot be read.") from None
    if len(found) != 1 or not isinstance(found[0], _STATEMENTS):
        raise WireError(UNSUPPORTED, "catalogues are asked with one SELECT at a time.")
    _title(found[0])
    _order(found[0])
    return found[0]


def _wrong_at(error: ParseError, text: str) -> int | None:
    """Where the word begins that the parser stopped at."""
    for one in error.errors[:1]:
        line, end, word = one.get("line"), one.get("col"), one.get("highlight")
        if line and end and word:
            before = sum(len(part) + 1 for part in text.split("\n")[: line - 1])
            return int(min(before + max(end - len(word), 0), len(text)))
    return None


def _title(tree: exp.Expr) -> None:
    """Give the columns of the result the names that PostgreSQL gives them."""
    select: exp.Expr | None = tree
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    if not isinstance(select, exp.Select):
        return
    for item in select.expressions:
        if not isinstance(item, exp.Alias | exp.Column | exp.Star | exp.Aliases):
            item.replace(exp.alias_(item.copy(), title(item), quoted=True))


def _order(tree: exp.Expr) -> None:
    """Columns come in their order where none is asked for, as from PostgreSQL: there are clients that rely on it."""
    if not isinstance(tree, exp.Select) or any(tree.args.get(part) for part in ("order", "group", "distinct")):
        return
    if any(item.find(exp.AggFunc, exp.Window) for item in tree.expressions):
        return
    tables = [part.this for part in (tree.args.get("from_"), *tree.args.get("joins", ())) if part is not None]
    for table in tables:
        if isinstance(table, exp.Table) and table.name.lower() in _IN_ORDER:
            number = exp.column(_IN_ORDER[table.name.lower()], table=table.alias_or_name)
            tree.order_by(number, copy=False)


def parameter_types(tree: exp.Expr) -> tuple[int, ...]:
    """The types of its parameters: that of a cast around it, else text."""
    found: dict[int, int] = {}
    for node in tree.find_all(exp.Parameter):
        number = _number(node)
        cast = node.parent
        type = _named(cast.to) if isinstance(cast, exp.Cast) else 0
        found[number] = type or found.get(number, TEXT)
    return tuple(found.get(number, TEXT) for number in range(1, max(found, default=0) + 1))


def translated(tree: exp.Expr, values: Sequence[WireValue], caller: Caller, known: CatalogueNames) -> str:
    """The statement for DuckDB, with these values for its parameters."""
    try:
        names = {_given_name(cte) for cte in tree.find_all(exp.CTE)}
        made = tree.copy()
        for node in reversed(list(made.walk(bfs=False))):  # children before their parents
            new = _node(_bound(node, values), caller, known, names)
            if new is not node:
                made = new if node is made else made
                node.replace(new)
        for node in made.walk():
            if isinstance(node, _NEVER) or (isinstance(node, exp.Func) and not isinstance(node, _FUNCTIONS)):
                name = node.sql_name().lower() if isinstance(node, exp.Func) else "this statement"
                raise WireError(NO_FUNCTION, f"{name} is not answered in the catalogues.")
        return made.sql(DuckDB())
    except (SqlglotError, RecursionError, ValueError, AttributeError, TypeError):
        raise WireError(UNSUPPORTED, "this is not answered from the catalogues.") from None


def _given_name(cte: exp.CTE) -> str:
    """The name that WITH gives. None that the engine or a file has: where it does not reach, theirs would be meant."""
    name = cte.alias.lower()
    if not name.isidentifier() or name.startswith(_ENGINE):
        raise WireError(NO_TABLE, f'nothing may be called "{name[:60]}" here.')
    return name


def _number(node: exp.Parameter) -> int:
    text = node.name
    if not text.isdecimal() or not 1 <= int(text) <= 1_000:
        raise WireError(SYNTAX, "parameters are $1 to $1000.")
    return int(text)


def _bound(node: exp.Expr, values: Sequence[WireValue]) -> exp.Expr:
    return _literal(values[_number(node) - 1]) if isinstance(node, exp.Parameter) else node


def _literal(value: object) -> exp.Expr:
    if value is None:
        return exp.null()
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    return exp.Literal.number(str(value)) if isinstance(value, int | float) else exp.Literal.string(str(value))


def _node(node: exp.Expr, caller: Caller, known: CatalogueNames, names: Collection[str]) -> exp.Expr:
    """What stands for one node, whose children are what they will be."""
    match node:
        case exp.Table():
            return _table(node, known, names)
        case exp.Dot() if isinstance(node.expression, exp.Func | exp.Dot | exp.Literal | exp.Null | exp.Array):
            return cast(exp.Expr, node.expression)  # pg_catalog.format_type(…), or what stands for it
        case exp.Anonymous():
            return _function(node, caller, known)
        case exp.Cast():
            return _cast(node)
        case exp.Collate():
            return cast(exp.Expr, node.this)
        case exp.Any() | exp.All() if (listed := _listed(stripped(node.this))) is not None:
            return type(node)(this=exp.paren(listed, copy=False))
        case exp.EQ() | exp.NEQ() if node.this.name in _FUNCTION_NAMES and node.expression.name == "0":
            return type(node)(this=node.this.copy(), expression=exp.Literal.string("-"))
        case exp.Operator():
            return _operator(node)
        case exp.Format():
            return _formatted(node)
        case exp.Lock():
            return exp.Lock()
    return _constant(node, caller) or node


def _table(node: exp.Table, known: CatalogueNames, names: Collection[str]) -> exp.Expr:
    if isinstance(node.this, exp.StringToArray):  # one row, which is called like its column
        name = node.alias or "string_to_array"
        return exp.select(exp.alias_(node.this.copy(), name)).subquery(name)
    if isinstance(node.this, exp.Anonymous) and node.this.name.lower() == _KEYWORDS and not node.this.expressions:
        return exp.table_(_KEYWORDS, db="pg", alias=node.alias or _KEYWORDS)
    if isinstance(node.this, exp.Func):
        listed = isinstance(node.this, exp.Unnest | exp.Explode | exp.GenerateSeries | exp.ExplodingGenerateSeries)
        if node.this.name.lower() not in _TABLE_FUNCTIONS and not listed:
            raise WireError(NO_FUNCTION, "this function is no table of the catalogues.")
        node.set("db", None)
        if node.alias and not node.args["alias"].args.get("columns"):  # its one column is called like it
            node.args["alias"].set("columns", [exp.to_identifier(node.alias)])
        return node
    schema, name = node.db.lower(), node.name.lower()
    if not schema and name in names:
        return node
    here = SCHEMAS.get(schema, "pg") if schema in SCHEMAS or not schema else ""
    if name in known.tables.get(here, ()):
        node.set("db", exp.to_identifier(here))
        node.set("catalog", None)
        node.set("this", exp.to_identifier(name, quoted=True))
        if not node.alias:  # columns may be called by the table's name, pg_catalog.pg_class.relname too
            node.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
        return node
    shown = f"{schema}.{name}" if schema else name
    if name in known.datasets and schema in ("", "public"):
        words = f"{name} is asked by itself, as in SELECT COUNT(*) FROM {name}; its rows are never shown."
        raise WireError(UNSUPPORTED, words, at=start_of(node))
    hint = f"The tables are {', '.join(known.datasets)}; catalogues are asked by themselves."
    raise WireError(NO_TABLE, f'relation "{shown[:120]}" does not exist.', at=start_of(node), hint=hint)


def _function(node: exp.Anonymous, caller: Caller, known: CatalogueNames) -> exp.Expr:
    name = str(node.this).lower()
    arguments = node.expressions
    if name == "current_setting" and arguments and isinstance(arguments[0], exp.Literal):
        wanted = str(arguments[0].this).lower()
        found = next((value for key, value in caller.settings.items() if key.lower() == wanted), None)
        return exp.null() if found is None else exp.Literal.string(found)
    if name == "current_schemas":
        return _schemas(*arguments)
    if name == "current_schema":
        return exp.Literal.string("public")
    if name == "current_database":
        return exp.Literal.string(caller.database)
    if name == "version":
        return exp.Literal.string(version(caller))
    if name in ("json_build_object", "jsonb_build_object", "row_to_json", "to_json"):
        return exp.null()  # of options of columns, and none has any
    if name == "pg_backend_pid":
        return exp.Literal.number(caller.process)
    if name in _TABLE_FUNCTIONS or name in _PLAIN or name == _KEYWORDS:
        return node
    if name == "all" and len(arguments) == 1:  # of a list
        items = exp.Anonymous(this="unnest", expressions=[arguments[0].copy()])
        return exp.All(this=exp.select(items).subquery())
    if name not in known.functions:
        raise WireError(NO_FUNCTION, f"function {name[:60]} does not exist.", at=start_of(node))
    return exp.Dot(this=exp.to_identifier("pg"), expression=exp.Anonymous(this=name, expressions=arguments))


def _formatted(node: exp.Format) -> exp.Expr:
    """format('%I.%I', a, b), where the pattern is written out."""
    pattern, given = node.this, list(node.expressions)
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise WireError(NO_FUNCTION, "format takes a pattern that is written out.")
    kinds = {"I": "quote_ident", "L": "quote_literal"}
    first, *rest = str(pattern.this).replace("%%", "\0").split("%")
    parts: list[exp.Expr] = [exp.Literal.string(first.replace("\0", "%"))]
    for piece in rest:
        if piece[:1] not in ("I", "L", "s") or not given:
            raise WireError(NO_FUNCTION, "format takes %I, %L and %s here, and a value for each.")
        value = exp.cast(given.pop(0), "varchar")
        parts.append(_ours(kinds[piece[0]], value) if piece[0] in kinds else value)
        parts.append(exp.Literal.string(piece[1:].replace("\0", "%")))
    return exp.Concat(expressions=parts)


def version(caller: Caller) -> str:
    from tacit import __version__

    return f"PostgreSQL {caller.settings.get('server_version', '')} (Tacit {__version__})"


def _constant(node: exp.Expr, caller: Caller) -> exp.Expr | None:
    word = node.name.lower() if isinstance(node, exp.Column) and not node.table and not node.this.quoted else ""
    if isinstance(node, exp.CurrentUser | exp.SessionUser | exp.CurrentRole) or word in ("user", "current_user"):
        return exp.Literal.string(caller.user)
    if isinstance(node, exp.CurrentDatabase | exp.CurrentCatalog):
        return exp.Literal.string(caller.database)
    if isinstance(node, exp.CurrentSchema):
        return exp.Literal.string("public")
    if isinstance(node, exp.CurrentSchemas):
        return _schemas(node.this)
    if isinstance(node, exp.CurrentVersion):
        return exp.Literal.string(version(caller))
    if isinstance(node, exp.Column) and node.args.get("db") and node.args["db"].name.lower() in SCHEMAS:
        return exp.Column(this=node.this, table=node.args["table"])  # pg_catalog.pg_class.relname
    return None


def _schemas(system: exp.Expr | None = None) -> exp.Expr:
    listed = ["pg_catalog", "public"] if system is None or system == exp.true() else ["public"]
    return exp.Array(expressions=[exp.Literal.string(name) for name in listed])


def _cast(node: exp.Cast) -> exp.Expr:
    type = node.to.sql("postgres").lower().rpartition(".")[2].strip('"')
    text = isinstance(node.this, exp.Concat) or (isinstance(node.this, exp.Literal) and node.this.is_string)
    if type in ("regclass", "regtype", "regnamespace"):
        kind = {"regclass": "class", "regtype": "type", "regnamespace": "namespace"}[type]
        if not text and kind == "type":
            return _ours("format_type", node.this, exp.null())
        return _ours(f"{kind}_oid" if text else f"{kind}_name", node.this)
    if type in ("regproc", "regprocedure", "regrole", "regoper"):
        return _ours("bare", exp.cast(node.this, "varchar"))
    if type in ("oid", "xid", "cid"):
        return exp.cast(node.this, exp.DataType.build("UINTEGER", dialect="duckdb"))
    if type.endswith("[]"):
        return exp.cast(_listed(node.this) or node.this, exp.DataType.build(f"{_element(type)}[]", dialect="duckdb"))
    if type not in _AS_TEXT and (type in NAMED or type == "interval"):
        return node
    return exp.cast(node.this, "varchar")  # also of what the engine has no type for: jsonb, xml, pg_node_tree


def _listed(node: exp.Expr) -> exp.Expr | None:
    """The list that a text like '{r,v}' stands for; None where it is no such text."""
    if not isinstance(node, exp.Literal) or not node.is_string or not node.name.startswith("{"):
        return None
    items = [item.strip().strip('"') for item in node.name.strip("{}").split(",") if item.strip()]
    return exp.Array(expressions=[exp.Literal.string(item) for item in items])


def _element(type: str) -> str:
    word = type.rstrip("[]").strip('"')
    return _ELEMENTS.get(word, "INTEGER" if word.startswith("int") else "VARCHAR")


def _ours(name: str, *arguments: exp.Expr) -> exp.Expr:
    made = exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])
    return exp.Dot(this=exp.to_identifier("pg"), expression=made)


def _operator(node: exp.Operator) -> exp.Expr:
    """OPERATOR(pg_catalog.~), which psql writes."""
    sign = str(node.args["operator"]).rpartition(".")[2]
    left, right = node.this, node.expression
    made: dict[str, exp.Expr] = {
        "~": exp.RegexpLike(this=left, expression=right),
        "!~": exp.Not(this=exp.RegexpLike(this=left, expression=right)),
        "~~": exp.Like(this=left, expression=right),
        "!~~": exp.Not(this=exp.Like(this=left, expression=right)),
        "=": exp.EQ(this=left, expression=right),
        "<>": exp.NEQ(this=left, expression=right),
    }
    if sign not in made:
        raise WireError(NO_FUNCTION, f"operator {sign[:20]} does not exist.")
    return made[sign]


def _named(type: exp.Expr) -> int:
    return NAMED.get(type.sql("postgres").lower().rpartition(".")[2].strip('"'), 0)
