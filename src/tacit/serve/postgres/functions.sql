-- Functions that PostgreSQL's clients call in the catalogues. What there is nothing to tell about is NULL, or empty.

CREATE MACRO pg.bare(name) AS replace(regexp_extract(name, '([^.]*)$', 1), '"', '');
CREATE MACRO pg.class_oid(name) AS (SELECT min(oid) FROM pg.pg_class WHERE relname = pg.bare(name));
CREATE MACRO pg.class_name(class) AS (SELECT min(relname) FROM pg.pg_class WHERE oid = TRY_CAST(class AS UINTEGER));
CREATE MACRO pg.format_type(type, modifier) AS (SELECT min(words) FROM pg.type_words WHERE oid = type);
CREATE MACRO pg.type_oid(name) AS
    (SELECT min(oid) FROM pg.pg_type WHERE typname = pg.bare(name) OR pg.format_type(oid, NULL) = name);
CREATE MACRO pg.namespace_oid(name) AS (SELECT min(oid) FROM pg.pg_namespace WHERE nspname = pg.bare(name));
CREATE MACRO pg.namespace_name(space) AS (SELECT min(nspname) FROM pg.pg_namespace WHERE oid = space);
CREATE MACRO pg.to_regclass(name) AS pg.class_oid(name);
CREATE MACRO pg.to_regtype(name) AS pg.type_oid(name);

CREATE MACRO pg.pg_get_userbyid(role) AS 'tacit';
CREATE MACRO pg.pg_table_is_visible(class) AS
    EXISTS (SELECT 1 FROM pg.pg_class v WHERE v.oid = class AND v.relnamespace IN (11, 2200));
CREATE MACRO pg.pg_type_is_visible(type) AS true;
CREATE MACRO pg.pg_function_is_visible(function) AS true;
CREATE MACRO pg.pg_statistics_obj_is_visible(object) AS true;
CREATE MACRO pg.pg_opclass_is_visible(object) AS true;
CREATE MACRO pg.pg_operator_is_visible(object) AS true;
CREATE MACRO pg.pg_opfamily_is_visible(object) AS true;
CREATE MACRO pg.pg_collation_is_visible(object) AS true;
CREATE MACRO pg.pg_conversion_is_visible(object) AS true;
CREATE MACRO pg.pg_ts_config_is_visible(object) AS true;
CREATE MACRO pg.pg_ts_dict_is_visible(object) AS true;
CREATE MACRO pg.pg_ts_parser_is_visible(object) AS true;
CREATE MACRO pg.pg_ts_template_is_visible(object) AS true;
CREATE MACRO pg.obj_description(object, catalogue := NULL) AS
    (SELECT min(description) FROM pg.pg_description d WHERE d.objoid = object AND d.objsubid = 0);
CREATE MACRO pg.col_description(class, number) AS
    (SELECT min(description) FROM pg.pg_description d WHERE d.objoid = class AND d.objsubid = number);
CREATE MACRO pg.shobj_description(object, catalogue) AS NULL::VARCHAR;

CREATE MACRO pg.pg_get_expr(tree, class, pretty := NULL) AS NULL::VARCHAR;
CREATE MACRO pg.pg_get_constraintdef(object, pretty := NULL) AS NULL::VARCHAR;
CREATE MACRO pg.pg_get_indexdef(object, number := NULL, pretty := NULL) AS NULL::VARCHAR;
CREATE MACRO pg.pg_get_viewdef(object, pretty := NULL) AS NULL::VARCHAR;
CREATE MACRO pg.pg_get_ruledef(object, pretty := NULL) AS NULL::VARCHAR;
CREATE MACRO pg.pg_get_triggerdef(object, pretty := NULL) AS NULL::VARCHAR;
CREATE MACRO pg.pg_get_partkeydef(object) AS NULL::VARCHAR;
CREATE MACRO pg.pg_get_serial_sequence(class, name) AS NULL::VARCHAR;
CREATE MACRO pg.pg_get_function_result(object) AS NULL::VARCHAR;
CREATE MACRO pg.pg_get_function_arguments(object) AS NULL::VARCHAR;
CREATE MACRO pg.pg_get_function_identity_arguments(object) AS NULL::VARCHAR;
CREATE MACRO pg.pg_get_functiondef(object) AS NULL::VARCHAR;
CREATE MACRO pg.pg_get_statisticsobjdef_columns(object) AS NULL::VARCHAR;
CREATE MACRO pg.pg_relation_is_publishable(class) AS false;
CREATE MACRO pg.pg_relation_size(class, fork := NULL) AS 0::BIGINT;
CREATE MACRO pg.pg_table_size(class) AS 0::BIGINT;
CREATE MACRO pg.pg_indexes_size(class) AS 0::BIGINT;
CREATE MACRO pg.pg_total_relation_size(class) AS 0::BIGINT;
CREATE MACRO pg.pg_database_size(name) AS 0::BIGINT;
CREATE MACRO pg.pg_tablespace_size(name) AS 0::BIGINT;
CREATE MACRO pg.pg_tablespace_location(object) AS '';
CREATE MACRO pg.pg_stat_get_numscans(class) AS 0::BIGINT;
CREATE MACRO pg.pg_size_pretty(size) AS concat(size, ' bytes');
CREATE MACRO pg.pg_encoding_to_char(encoding) AS 'UTF8';
CREATE MACRO pg.pg_char_to_encoding(name) AS 6;
CREATE MACRO pg.pg_is_in_recovery() AS false;
CREATE MACRO pg.pg_my_temp_schema() AS 0::UINTEGER;
CREATE MACRO pg.pg_is_other_temp_schema(space) AS false;
CREATE MACRO pg.pg_advisory_unlock_all() AS NULL::VARCHAR;
CREATE MACRO pg.txid_current() AS 0::BIGINT;
CREATE MACRO pg.inet_server_addr() AS NULL::VARCHAR;
CREATE MACRO pg.inet_client_addr() AS NULL::VARCHAR;
CREATE MACRO pg.inet_server_port() AS NULL::INTEGER;
CREATE MACRO pg.inet_client_port() AS NULL::INTEGER;

-- Everybody may ask about everything that is shown.
CREATE MACRO pg.has_table_privilege(a, b, c := NULL) AS true;
CREATE MACRO pg.has_any_column_privilege(a, b, c := NULL) AS true;
CREATE MACRO pg.has_column_privilege(a, b, c, d := NULL) AS true;
CREATE MACRO pg.has_schema_privilege(a, b, c := NULL) AS true;
CREATE MACRO pg.has_database_privilege(a, b, c := NULL) AS true;
CREATE MACRO pg.has_function_privilege(a, b, c := NULL) AS true;
CREATE MACRO pg.has_sequence_privilege(a, b, c := NULL) AS true;
CREATE MACRO pg.pg_has_role(a, b, c := NULL) AS true;
CREATE MACRO pg.row_security_active(class) AS false;

CREATE MACRO pg.quote_ident(name) AS
    CASE WHEN regexp_full_match(name, '[a-z_][a-z0-9_]*') THEN name ELSE '"' || replace(name, '"', '""') || '"' END;
CREATE MACRO pg.quote_literal(words) AS '''' || replace(words, '''', '''''') || '''';
CREATE MACRO pg.array_lower(items, dimension) AS CASE WHEN len(items) > 0 THEN 1 END;
CREATE MACRO pg.array_upper(items, dimension) AS CASE WHEN len(items) > 0 THEN len(items) END;
CREATE MACRO pg.array_length(items, dimension) AS CASE WHEN len(items) > 0 THEN len(items) END;
CREATE MACRO pg.cardinality(items) AS len(items);
CREATE MACRO pg.generate_subscripts(items, dimension) AS unnest(range(1, 1 + len(items)));
CREATE MACRO pg.parse_ident(name, strict := NULL) AS str_split(replace(name, '"', ''), '.');
CREATE MACRO pg.current_setting(wanted, missing := NULL) AS
    (SELECT min(setting) FROM pg.pg_settings s WHERE lower(s.name) = lower(wanted));
CREATE MACRO pg._pg_expandarray(items) AS unnest(list_transform(items, lambda v, i: {'x': v, 'n': i}));
CREATE MACRO pg.set_config(name, value, local) AS value;
