-- The tables that PostgreSQL's clients look into. Names and types of columns are those of PostgreSQL 15.
-- What a row says by default is what is true of every data set.
-- DuckDB has schemas of the real names itself, so these are called pg and information; `translation` knows that.

CREATE SCHEMA pg;
CREATE SCHEMA information;
CREATE SCHEMA tacit;

CREATE TABLE pg.pg_namespace (oid UINTEGER, nspname VARCHAR, nspowner UINTEGER DEFAULT 10, nspacl VARCHAR[],
    tableoid UINTEGER DEFAULT 2615);
CREATE TABLE pg.pg_class (oid UINTEGER, relname VARCHAR, relnamespace UINTEGER DEFAULT 2200,
    reltype UINTEGER DEFAULT 0, reloftype UINTEGER DEFAULT 0, relowner UINTEGER DEFAULT 10, relam UINTEGER DEFAULT 2,
    relfilenode UINTEGER DEFAULT 0, reltablespace UINTEGER DEFAULT 0, relpages INTEGER DEFAULT 0,
    reltuples FLOAT DEFAULT -1, relallvisible INTEGER DEFAULT 0, reltoastrelid UINTEGER DEFAULT 0,
    relhasindex BOOLEAN DEFAULT false, relisshared BOOLEAN DEFAULT false, relpersistence VARCHAR DEFAULT 'p',
    relkind VARCHAR DEFAULT 'r', relnatts SMALLINT DEFAULT 0, relchecks SMALLINT DEFAULT 0,
    relhasrules BOOLEAN DEFAULT false, relhastriggers BOOLEAN DEFAULT false, relhassubclass BOOLEAN DEFAULT false,
    relrowsecurity BOOLEAN DEFAULT false, relforcerowsecurity BOOLEAN DEFAULT false,
    relispopulated BOOLEAN DEFAULT true, relreplident VARCHAR DEFAULT 'd', relispartition BOOLEAN DEFAULT false,
    relrewrite UINTEGER DEFAULT 0, relfrozenxid UINTEGER, relminmxid UINTEGER, relacl VARCHAR[], reloptions VARCHAR[],
    relpartbound VARCHAR, tableoid UINTEGER DEFAULT 1259);
CREATE TABLE pg.pg_attribute (attrelid UINTEGER, attname VARCHAR, atttypid UINTEGER, attstattarget INTEGER DEFAULT -1,
    attlen SMALLINT, attnum SMALLINT, attndims INTEGER DEFAULT 0, attcacheoff INTEGER DEFAULT -1,
    atttypmod INTEGER DEFAULT -1, attbyval BOOLEAN DEFAULT false, attalign VARCHAR DEFAULT 'd',
    attstorage VARCHAR DEFAULT 'p', attcompression VARCHAR DEFAULT '', attnotnull BOOLEAN,
    atthasdef BOOLEAN DEFAULT false, atthasmissing BOOLEAN DEFAULT false, attidentity VARCHAR DEFAULT '',
    attgenerated VARCHAR DEFAULT '', attisdropped BOOLEAN DEFAULT false, attislocal BOOLEAN DEFAULT true,
    attinhcount INTEGER DEFAULT 0, attcollation UINTEGER DEFAULT 0, attacl VARCHAR[], attoptions VARCHAR[],
    attfdwoptions VARCHAR[], attmissingval VARCHAR);
CREATE TABLE pg.pg_type (oid UINTEGER, typname VARCHAR, typnamespace UINTEGER DEFAULT 11,
    typowner UINTEGER DEFAULT 10, typlen SMALLINT, typbyval BOOLEAN, typtype VARCHAR DEFAULT 'b', typcategory VARCHAR,
    typispreferred BOOLEAN, typisdefined BOOLEAN DEFAULT true, typdelim VARCHAR DEFAULT ',',
    typrelid UINTEGER DEFAULT 0, typsubscript VARCHAR, typelem UINTEGER DEFAULT 0, typarray UINTEGER DEFAULT 0,
    typinput VARCHAR, typoutput VARCHAR, typreceive VARCHAR, typsend VARCHAR, typmodin VARCHAR, typmodout VARCHAR,
    typanalyze VARCHAR, typalign VARCHAR, typstorage VARCHAR, typnotnull BOOLEAN DEFAULT false,
    typbasetype UINTEGER DEFAULT 0, typtypmod INTEGER DEFAULT -1, typndims INTEGER DEFAULT 0,
    typcollation UINTEGER DEFAULT 0, typdefaultbin VARCHAR, typdefault VARCHAR, typacl VARCHAR[],
    tableoid UINTEGER DEFAULT 1247);
CREATE TABLE pg.pg_description (objoid UINTEGER, classoid UINTEGER DEFAULT 1259, objsubid INTEGER DEFAULT 0,
    description VARCHAR);
CREATE TABLE pg.pg_database (oid UINTEGER, datname VARCHAR, datdba UINTEGER DEFAULT 10, encoding INTEGER DEFAULT 6,
    datlocprovider VARCHAR DEFAULT 'c', datistemplate BOOLEAN DEFAULT false, datallowconn BOOLEAN DEFAULT true,
    datconnlimit INTEGER DEFAULT -1, datfrozenxid UINTEGER, datminmxid UINTEGER, dattablespace UINTEGER,
    datcollate VARCHAR DEFAULT 'C', datctype VARCHAR DEFAULT 'C', daticulocale VARCHAR, datcollversion VARCHAR,
    datacl VARCHAR[]);
CREATE TABLE pg.pg_roles (rolname VARCHAR, rolsuper BOOLEAN, rolinherit BOOLEAN, rolcreaterole BOOLEAN, rolcreatedb
    BOOLEAN, rolcanlogin BOOLEAN, rolreplication BOOLEAN, rolconnlimit INTEGER, rolpassword VARCHAR, rolvaliduntil
    TIMESTAMP, rolbypassrls BOOLEAN, rolconfig VARCHAR[], oid UINTEGER);
CREATE TABLE pg.pg_user (usename VARCHAR, usesysid UINTEGER, usecreatedb BOOLEAN, usesuper BOOLEAN, userepl BOOLEAN,
    usebypassrls BOOLEAN, passwd VARCHAR, valuntil TIMESTAMP, useconfig VARCHAR[]);
CREATE TABLE pg.pg_settings (name VARCHAR, setting VARCHAR, unit VARCHAR, category VARCHAR, short_desc VARCHAR,
    extra_desc VARCHAR, context VARCHAR DEFAULT 'user', vartype VARCHAR DEFAULT 'string', source VARCHAR,
    min_val VARCHAR, max_val VARCHAR, enumvals VARCHAR[], boot_val VARCHAR, reset_val VARCHAR, sourcefile VARCHAR,
    sourceline INTEGER, pending_restart BOOLEAN);
CREATE TABLE pg.pg_index (indexrelid UINTEGER, indrelid UINTEGER, indnatts SMALLINT, indnkeyatts SMALLINT, indisunique
    BOOLEAN, indnullsnotdistinct BOOLEAN, indisprimary BOOLEAN, indisexclusion BOOLEAN, indimmediate BOOLEAN,
    indisclustered BOOLEAN, indisvalid BOOLEAN, indcheckxmin BOOLEAN, indisready BOOLEAN, indislive BOOLEAN,
    indisreplident BOOLEAN, indkey SMALLINT[], indcollation UINTEGER[], indclass UINTEGER[], indoption SMALLINT[],
    indexprs VARCHAR, indpred VARCHAR);
CREATE TABLE pg.pg_constraint (oid UINTEGER, conname VARCHAR, connamespace UINTEGER, contype VARCHAR, condeferrable
    BOOLEAN, condeferred BOOLEAN, convalidated BOOLEAN, conrelid UINTEGER, contypid UINTEGER, conindid UINTEGER,
    conparentid UINTEGER, confrelid UINTEGER, confupdtype VARCHAR, confdeltype VARCHAR, confmatchtype VARCHAR,
    conislocal BOOLEAN, coninhcount INTEGER, connoinherit BOOLEAN, conkey SMALLINT[], confkey SMALLINT[], conpfeqop
    UINTEGER[], conppeqop UINTEGER[], conffeqop UINTEGER[], confdelsetcols SMALLINT[], conexclop UINTEGER[], conbin
    VARCHAR);
CREATE TABLE pg.pg_attrdef (oid UINTEGER, adrelid UINTEGER, adnum SMALLINT, adbin VARCHAR);
CREATE TABLE pg.pg_proc (oid UINTEGER, proname VARCHAR, pronamespace UINTEGER, proowner UINTEGER, prolang UINTEGER,
    procost FLOAT, prorows FLOAT, provariadic UINTEGER, prosupport VARCHAR, prokind VARCHAR, prosecdef BOOLEAN,
    proleakproof BOOLEAN, proisstrict BOOLEAN, proretset BOOLEAN, provolatile VARCHAR, proparallel VARCHAR, pronargs
    SMALLINT, pronargdefaults SMALLINT, prorettype UINTEGER, proargtypes UINTEGER[], proallargtypes UINTEGER[],
    proargmodes VARCHAR[], proargnames VARCHAR[], proargdefaults VARCHAR, protrftypes UINTEGER[], prosrc VARCHAR,
    probin VARCHAR, prosqlbody VARCHAR, proconfig VARCHAR[], proacl VARCHAR[], tableoid UINTEGER);
CREATE TABLE pg.pg_am (oid UINTEGER, amname VARCHAR, amhandler VARCHAR, amtype VARCHAR);
CREATE TABLE pg.pg_inherits (inhrelid UINTEGER, inhparent UINTEGER, inhseqno INTEGER, inhdetachpending BOOLEAN);
CREATE TABLE pg.pg_enum (oid UINTEGER, enumtypid UINTEGER, enumsortorder FLOAT, enumlabel VARCHAR);
CREATE TABLE pg.pg_range (rngtypid UINTEGER, rngsubtype UINTEGER, rngmultitypid UINTEGER, rngcollation UINTEGER,
    rngsubopc UINTEGER, rngcanonical VARCHAR, rngsubdiff VARCHAR);
CREATE TABLE pg.pg_collation (oid UINTEGER, collname VARCHAR, collnamespace UINTEGER, collowner UINTEGER, collprovider
    VARCHAR, collisdeterministic BOOLEAN, collencoding INTEGER, collcollate VARCHAR, collctype VARCHAR, colliculocale
    VARCHAR, collversion VARCHAR);
CREATE TABLE pg.pg_tablespace (oid UINTEGER, spcname VARCHAR, spcowner UINTEGER, spcacl VARCHAR[], spcoptions
    VARCHAR[]);
CREATE TABLE pg.pg_extension (oid UINTEGER, extname VARCHAR, extowner UINTEGER, extnamespace UINTEGER, extrelocatable
    BOOLEAN, extversion VARCHAR, extconfig UINTEGER[], extcondition VARCHAR[]);
CREATE TABLE pg.pg_trigger (oid UINTEGER, tgrelid UINTEGER, tgparentid UINTEGER, tgname VARCHAR, tgfoid UINTEGER,
    tgtype SMALLINT, tgenabled VARCHAR, tgisinternal BOOLEAN, tgconstrrelid UINTEGER, tgconstrindid UINTEGER,
    tgconstraint UINTEGER, tgdeferrable BOOLEAN, tginitdeferred BOOLEAN, tgnargs SMALLINT, tgattr SMALLINT[], tgargs
    VARCHAR, tgqual VARCHAR, tgoldtable VARCHAR, tgnewtable VARCHAR);
CREATE TABLE pg.pg_rewrite (oid UINTEGER, rulename VARCHAR, ev_class UINTEGER, ev_type VARCHAR, ev_enabled VARCHAR,
    is_instead BOOLEAN, ev_qual VARCHAR, ev_action VARCHAR);
CREATE TABLE pg.pg_policy (oid UINTEGER, polname VARCHAR, polrelid UINTEGER, polcmd VARCHAR, polpermissive BOOLEAN,
    polroles UINTEGER[], polqual VARCHAR, polwithcheck VARCHAR);
CREATE TABLE pg.pg_sequence (seqrelid UINTEGER, seqtypid UINTEGER, seqstart BIGINT, seqincrement BIGINT, seqmax
    BIGINT, seqmin BIGINT, seqcache BIGINT, seqcycle BOOLEAN);
CREATE TABLE pg.pg_statistic_ext (oid UINTEGER, stxrelid UINTEGER, stxname VARCHAR, stxnamespace UINTEGER, stxowner
    UINTEGER, stxstattarget INTEGER, stxkeys SMALLINT[], stxkind VARCHAR[], stxexprs VARCHAR);
CREATE TABLE pg.pg_publication (oid UINTEGER, pubname VARCHAR, pubowner UINTEGER, puballtables BOOLEAN, pubinsert
    BOOLEAN, pubupdate BOOLEAN, pubdelete BOOLEAN, pubtruncate BOOLEAN, pubviaroot BOOLEAN);
CREATE TABLE pg.pg_publication_rel (oid UINTEGER, prpubid UINTEGER, prrelid UINTEGER, prqual VARCHAR, prattrs
    SMALLINT[]);
CREATE TABLE pg.pg_publication_namespace (oid UINTEGER, pnpubid UINTEGER, pnnspid UINTEGER);
CREATE TABLE pg.pg_foreign_table (ftrelid UINTEGER, ftserver UINTEGER, ftoptions VARCHAR[]);
CREATE TABLE pg.pg_foreign_server (oid UINTEGER, srvname VARCHAR, srvowner UINTEGER, srvfdw UINTEGER, srvtype VARCHAR,
    srvversion VARCHAR, srvacl VARCHAR[], srvoptions VARCHAR[]);
CREATE TABLE pg.pg_tables (schemaname VARCHAR DEFAULT 'public', tablename VARCHAR, tableowner VARCHAR DEFAULT 'tacit',
    tablespace VARCHAR, hasindexes BOOLEAN DEFAULT false, hasrules BOOLEAN, hastriggers BOOLEAN, rowsecurity BOOLEAN);
CREATE TABLE pg.pg_views (schemaname VARCHAR, viewname VARCHAR, viewowner VARCHAR, definition VARCHAR);
CREATE TABLE pg.pg_get_keywords (word VARCHAR, catcode VARCHAR DEFAULT 'U', barelabel BOOLEAN,
    catdesc VARCHAR DEFAULT 'unreserved', baredesc VARCHAR);
CREATE TABLE pg.pg_matviews (schemaname VARCHAR, matviewname VARCHAR, matviewowner VARCHAR, tablespace VARCHAR,
    hasindexes BOOLEAN, ispopulated BOOLEAN, definition VARCHAR);
CREATE TABLE pg.pg_indexes (schemaname VARCHAR, tablename VARCHAR, indexname VARCHAR, tablespace VARCHAR, indexdef
    VARCHAR);
CREATE TABLE pg.pg_stat_activity (datid UINTEGER, datname VARCHAR, pid INTEGER, leader_pid INTEGER, usesysid UINTEGER,
    usename VARCHAR, application_name VARCHAR, client_addr VARCHAR, client_hostname VARCHAR, client_port INTEGER,
    backend_start TIMESTAMP, xact_start TIMESTAMP, query_start TIMESTAMP, state_change TIMESTAMP, wait_event_type
    VARCHAR, wait_event VARCHAR, state VARCHAR, backend_xid UINTEGER, backend_xmin UINTEGER, query_id BIGINT, query
    VARCHAR, backend_type VARCHAR);
CREATE TABLE pg.pg_partitioned_table (partrelid UINTEGER, partstrat VARCHAR, partnatts SMALLINT, partdefid UINTEGER,
    partattrs SMALLINT[], partclass UINTEGER[], partcollation UINTEGER[], partexprs VARCHAR);
CREATE TABLE pg.pg_depend (classid UINTEGER, objid UINTEGER, objsubid INTEGER, refclassid UINTEGER, refobjid UINTEGER,
    refobjsubid INTEGER, deptype VARCHAR);
CREATE TABLE pg.pg_event_trigger (oid UINTEGER, evtname VARCHAR, evtevent VARCHAR, evtowner UINTEGER, evtfoid
    UINTEGER, evtenabled VARCHAR, evttags VARCHAR[]);
CREATE TABLE pg.pg_language (oid UINTEGER, lanname VARCHAR, lanowner UINTEGER, lanispl BOOLEAN, lanpltrusted BOOLEAN,
    lanplcallfoid UINTEGER, laninline UINTEGER, lanvalidator UINTEGER, lanacl VARCHAR[]);
CREATE TABLE pg.pg_cast (oid UINTEGER, castsource UINTEGER, casttarget UINTEGER, castfunc UINTEGER, castcontext
    VARCHAR, castmethod VARCHAR);
CREATE TABLE pg.pg_shdescription (objoid UINTEGER, classoid UINTEGER, description VARCHAR);
CREATE TABLE pg.pg_stat_user_tables (relid UINTEGER, schemaname VARCHAR DEFAULT 'public', relname VARCHAR,
    seq_scan BIGINT, seq_tup_read BIGINT, idx_scan BIGINT, idx_tup_fetch BIGINT, n_tup_ins BIGINT, n_tup_upd BIGINT,
    n_tup_del BIGINT, n_tup_hot_upd BIGINT, n_live_tup BIGINT, n_dead_tup BIGINT, n_mod_since_analyze BIGINT,
    n_ins_since_vacuum BIGINT, last_vacuum TIMESTAMP, last_autovacuum TIMESTAMP, last_analyze TIMESTAMP,
    last_autoanalyze TIMESTAMP, vacuum_count BIGINT, autovacuum_count BIGINT, analyze_count BIGINT,
    autoanalyze_count BIGINT);
CREATE TABLE pg.pg_locks (locktype VARCHAR, database UINTEGER, relation UINTEGER, page INTEGER, tuple SMALLINT,
    virtualxid VARCHAR, transactionid UINTEGER, classid UINTEGER, objid UINTEGER, objsubid SMALLINT,
    virtualtransaction VARCHAR, pid INTEGER, mode VARCHAR, granted BOOLEAN, fastpath BOOLEAN, waitstart TIMESTAMP);
CREATE TABLE pg.pg_auth_members (roleid UINTEGER, member UINTEGER, grantor UINTEGER, admin_option BOOLEAN);
CREATE TABLE pg.pg_operator (oid UINTEGER, oprname VARCHAR, oprnamespace UINTEGER, oprowner UINTEGER, oprkind VARCHAR,
    oprcanmerge BOOLEAN, oprcanhash BOOLEAN, oprleft UINTEGER, oprright UINTEGER, oprresult UINTEGER, oprcom UINTEGER,
    oprnegate UINTEGER, oprcode VARCHAR, oprrest VARCHAR, oprjoin VARCHAR);
CREATE TABLE pg.pg_opclass (oid UINTEGER, opcmethod UINTEGER, opcname VARCHAR, opcnamespace UINTEGER, opcowner
    UINTEGER, opcfamily UINTEGER, opcintype UINTEGER, opcdefault BOOLEAN, opckeytype UINTEGER);
CREATE TABLE pg.pg_aggregate (aggfnoid VARCHAR, aggkind VARCHAR, aggnumdirectargs SMALLINT, aggtransfn VARCHAR,
    aggfinalfn VARCHAR, aggcombinefn VARCHAR, aggserialfn VARCHAR, aggdeserialfn VARCHAR, aggmtransfn VARCHAR,
    aggminvtransfn VARCHAR, aggmfinalfn VARCHAR, aggfinalextra BOOLEAN, aggmfinalextra BOOLEAN, aggfinalmodify
    VARCHAR, aggmfinalmodify VARCHAR, aggsortop UINTEGER, aggtranstype UINTEGER, aggtransspace INTEGER, aggmtranstype
    UINTEGER, aggmtransspace INTEGER, agginitval VARCHAR, aggminitval VARCHAR);
CREATE TABLE pg.pg_sequences (schemaname VARCHAR, sequencename VARCHAR, sequenceowner VARCHAR, data_type VARCHAR,
    start_value BIGINT, min_value BIGINT, max_value BIGINT, increment_by BIGINT, cycle BOOLEAN, cache_size BIGINT,
    last_value BIGINT);
CREATE TABLE pg.pg_foreign_data_wrapper (oid UINTEGER, fdwname VARCHAR, fdwowner UINTEGER, fdwhandler UINTEGER,
    fdwvalidator UINTEGER, fdwacl VARCHAR[], fdwoptions VARCHAR[]);
CREATE TABLE pg.pg_user_mapping (oid UINTEGER, umuser UINTEGER, umserver UINTEGER, umoptions VARCHAR[]);
CREATE TABLE information.schemata (catalog_name VARCHAR DEFAULT 'tacit', schema_name VARCHAR,
    schema_owner VARCHAR DEFAULT 'tacit', default_character_set_catalog VARCHAR, default_character_set_schema VARCHAR,
    default_character_set_name VARCHAR, sql_path VARCHAR);
CREATE TABLE information.tables (table_catalog VARCHAR DEFAULT 'tacit', table_schema VARCHAR DEFAULT 'public',
    table_name VARCHAR, table_type VARCHAR DEFAULT 'BASE TABLE', self_referencing_column_name VARCHAR,
    reference_generation VARCHAR, user_defined_type_catalog VARCHAR, user_defined_type_schema VARCHAR,
    user_defined_type_name VARCHAR, is_insertable_into VARCHAR DEFAULT 'NO', is_typed VARCHAR DEFAULT 'NO',
    commit_action VARCHAR);
CREATE TABLE information.columns (table_catalog VARCHAR DEFAULT 'tacit', table_schema VARCHAR DEFAULT 'public',
    table_name VARCHAR, column_name VARCHAR, ordinal_position INTEGER, column_default VARCHAR, is_nullable VARCHAR,
    data_type VARCHAR, character_maximum_length INTEGER, character_octet_length INTEGER, numeric_precision INTEGER,
    numeric_precision_radix INTEGER, numeric_scale INTEGER, datetime_precision INTEGER, interval_type VARCHAR,
    interval_precision INTEGER, character_set_catalog VARCHAR, character_set_schema VARCHAR,
    character_set_name VARCHAR, collation_catalog VARCHAR, collation_schema VARCHAR, collation_name VARCHAR,
    domain_catalog VARCHAR, domain_schema VARCHAR, domain_name VARCHAR, udt_catalog VARCHAR DEFAULT 'tacit',
    udt_schema VARCHAR DEFAULT 'pg_catalog', udt_name VARCHAR, scope_catalog VARCHAR, scope_schema VARCHAR,
    scope_name VARCHAR, maximum_cardinality INTEGER, dtd_identifier VARCHAR, is_self_referencing VARCHAR,
    is_identity VARCHAR DEFAULT 'NO', identity_generation VARCHAR, identity_start VARCHAR, identity_increment VARCHAR,
    identity_maximum VARCHAR, identity_minimum VARCHAR, identity_cycle VARCHAR, is_generated VARCHAR DEFAULT 'NEVER',
    generation_expression VARCHAR, is_updatable VARCHAR DEFAULT 'NO');
CREATE TABLE information.views (table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, view_definition
    VARCHAR, check_option VARCHAR, is_updatable VARCHAR, is_insertable_into VARCHAR, is_trigger_updatable VARCHAR,
    is_trigger_deletable VARCHAR, is_trigger_insertable_into VARCHAR);
CREATE TABLE information.key_column_usage (constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name
    VARCHAR, table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, column_name VARCHAR, ordinal_position
    INTEGER, position_in_unique_constraint INTEGER);
CREATE TABLE information.table_constraints (constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name
    VARCHAR, table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, constraint_type VARCHAR, is_deferrable
    VARCHAR, initially_deferred VARCHAR, enforced VARCHAR, nulls_distinct VARCHAR);
CREATE TABLE information.referential_constraints (constraint_catalog VARCHAR, constraint_schema VARCHAR,
    constraint_name VARCHAR, unique_constraint_catalog VARCHAR, unique_constraint_schema VARCHAR,
    unique_constraint_name VARCHAR, match_option VARCHAR, update_rule VARCHAR, delete_rule VARCHAR);
CREATE TABLE information.constraint_column_usage (table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR,
    column_name VARCHAR, constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name VARCHAR);
CREATE TABLE information.routines (specific_catalog VARCHAR, specific_schema VARCHAR, specific_name VARCHAR,
    routine_catalog VARCHAR, routine_schema VARCHAR, routine_name VARCHAR, routine_type VARCHAR, module_catalog
    VARCHAR, module_schema VARCHAR, module_name VARCHAR, udt_catalog VARCHAR, udt_schema VARCHAR, udt_name VARCHAR,
    data_type VARCHAR, character_maximum_length INTEGER, character_octet_length INTEGER, character_set_catalog
    VARCHAR, character_set_schema VARCHAR, character_set_name VARCHAR, collation_catalog VARCHAR, collation_schema
    VARCHAR, collation_name VARCHAR, numeric_precision INTEGER, numeric_precision_radix INTEGER, numeric_scale
    INTEGER, datetime_precision INTEGER, interval_type VARCHAR, interval_precision INTEGER, type_udt_catalog VARCHAR,
    type_udt_schema VARCHAR, type_udt_name VARCHAR, scope_catalog VARCHAR, scope_schema VARCHAR, scope_name VARCHAR,
    maximum_cardinality INTEGER, dtd_identifier VARCHAR, routine_body VARCHAR, routine_definition VARCHAR,
    external_name VARCHAR, external_language VARCHAR, parameter_style VARCHAR, is_deterministic VARCHAR,
    sql_data_access VARCHAR, is_null_call VARCHAR, sql_path VARCHAR, schema_level_routine VARCHAR,
    max_dynamic_result_sets INTEGER, is_user_defined_cast VARCHAR, is_implicitly_invocable VARCHAR, security_type
    VARCHAR, to_sql_specific_catalog VARCHAR, to_sql_specific_schema VARCHAR, to_sql_specific_name VARCHAR, as_locator
    VARCHAR, created TIMESTAMP, last_altered TIMESTAMP, new_savepoint_level VARCHAR, is_udt_dependent VARCHAR,
    result_cast_from_data_type VARCHAR, result_cast_as_locator VARCHAR, result_cast_char_max_length INTEGER,
    result_cast_char_octet_length INTEGER, result_cast_char_set_catalog VARCHAR, result_cast_char_set_schema VARCHAR,
    result_cast_char_set_name VARCHAR, result_cast_collation_catalog VARCHAR, result_cast_collation_schema VARCHAR,
    result_cast_collation_name VARCHAR, result_cast_numeric_precision INTEGER, result_cast_numeric_precision_radix
    INTEGER, result_cast_numeric_scale INTEGER, result_cast_datetime_precision INTEGER, result_cast_interval_type
    VARCHAR, result_cast_interval_precision INTEGER, result_cast_type_udt_catalog VARCHAR, result_cast_type_udt_schema
    VARCHAR, result_cast_type_udt_name VARCHAR, result_cast_scope_catalog VARCHAR, result_cast_scope_schema VARCHAR,
    result_cast_scope_name VARCHAR, result_cast_maximum_cardinality INTEGER, result_cast_dtd_identifier VARCHAR);
CREATE TABLE information.parameters (specific_catalog VARCHAR, specific_schema VARCHAR, specific_name VARCHAR,
    ordinal_position INTEGER, parameter_mode VARCHAR, is_result VARCHAR, as_locator VARCHAR, parameter_name VARCHAR,
    data_type VARCHAR, character_maximum_length INTEGER, character_octet_length INTEGER, character_set_catalog
    VARCHAR, character_set_schema VARCHAR, character_set_name VARCHAR, collation_catalog VARCHAR, collation_schema
    VARCHAR, collation_name VARCHAR, numeric_precision INTEGER, numeric_precision_radix INTEGER, numeric_scale
    INTEGER, datetime_precision INTEGER, interval_type VARCHAR, interval_precision INTEGER, udt_catalog VARCHAR,
    udt_schema VARCHAR, udt_name VARCHAR, scope_catalog VARCHAR, scope_schema VARCHAR, scope_name VARCHAR,
    maximum_cardinality INTEGER, dtd_identifier VARCHAR, parameter_default VARCHAR);
CREATE TABLE information.sequences (sequence_catalog VARCHAR, sequence_schema VARCHAR, sequence_name VARCHAR,
    data_type VARCHAR, numeric_precision INTEGER, numeric_precision_radix INTEGER, numeric_scale INTEGER, start_value
    VARCHAR, minimum_value VARCHAR, maximum_value VARCHAR, increment VARCHAR, "cycle_option" VARCHAR);
CREATE TABLE information.triggers (trigger_catalog VARCHAR, trigger_schema VARCHAR, trigger_name VARCHAR,
    event_manipulation VARCHAR, event_object_catalog VARCHAR, event_object_schema VARCHAR, event_object_table VARCHAR,
    action_order INTEGER, action_condition VARCHAR, action_statement VARCHAR, action_orientation VARCHAR,
    action_timing VARCHAR, action_reference_old_table VARCHAR, action_reference_new_table VARCHAR,
    action_reference_old_row VARCHAR, action_reference_new_row VARCHAR, created TIMESTAMP);
CREATE TABLE information.domains (domain_catalog VARCHAR, domain_schema VARCHAR, domain_name VARCHAR, data_type
    VARCHAR, character_maximum_length INTEGER, character_octet_length INTEGER, character_set_catalog VARCHAR,
    character_set_schema VARCHAR, character_set_name VARCHAR, collation_catalog VARCHAR, collation_schema VARCHAR,
    collation_name VARCHAR, numeric_precision INTEGER, numeric_precision_radix INTEGER, numeric_scale INTEGER,
    datetime_precision INTEGER, interval_type VARCHAR, interval_precision INTEGER, domain_default VARCHAR, udt_catalog
    VARCHAR, udt_schema VARCHAR, udt_name VARCHAR, scope_catalog VARCHAR, scope_schema VARCHAR, scope_name VARCHAR,
    maximum_cardinality INTEGER, dtd_identifier VARCHAR);
CREATE TABLE information.element_types (object_catalog VARCHAR, object_schema VARCHAR, object_name VARCHAR,
    object_type VARCHAR, collection_type_identifier VARCHAR, data_type VARCHAR, character_maximum_length INTEGER,
    character_octet_length INTEGER, character_set_catalog VARCHAR, character_set_schema VARCHAR, character_set_name
    VARCHAR, collation_catalog VARCHAR, collation_schema VARCHAR, collation_name VARCHAR, numeric_precision INTEGER,
    numeric_precision_radix INTEGER, numeric_scale INTEGER, datetime_precision INTEGER, interval_type VARCHAR,
    interval_precision INTEGER, domain_default VARCHAR, udt_catalog VARCHAR, udt_schema VARCHAR, udt_name VARCHAR,
    scope_catalog VARCHAR, scope_schema VARCHAR, scope_name VARCHAR, maximum_cardinality INTEGER, dtd_identifier
    VARCHAR);
CREATE TABLE information.table_privileges (grantor VARCHAR, grantee VARCHAR, table_catalog VARCHAR, table_schema
    VARCHAR, table_name VARCHAR, privilege_type VARCHAR, is_grantable VARCHAR, with_hierarchy VARCHAR);
CREATE TABLE information.column_privileges (grantor VARCHAR, grantee VARCHAR, table_catalog VARCHAR, table_schema
    VARCHAR, table_name VARCHAR, column_name VARCHAR, privilege_type VARCHAR, is_grantable VARCHAR);
CREATE TABLE information.enabled_roles (role_name VARCHAR);
CREATE TABLE information.applicable_roles (grantee VARCHAR, role_name VARCHAR, is_grantable VARCHAR);
CREATE TABLE information.check_constraints (constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name
    VARCHAR, check_clause VARCHAR);

CREATE TABLE tacit.values (table_name VARCHAR, column_name VARCHAR, position INTEGER, value VARCHAR, is_other BOOLEAN,
    is_missing BOOLEAN);
CREATE TABLE tacit.datasets (table_name VARCHAR, rows BIGINT, mechanism VARCHAR, confidence DOUBLE);
CREATE TABLE pg.type_words (oid UINTEGER, words VARCHAR);  -- what format_type calls a type

-- What is the same on every server. Data sets are tables of the schema public, and belong to the role tacit.

INSERT INTO pg.pg_namespace (oid, nspname) VALUES
    (11, 'pg_catalog'), (2200, 'public'), (13000, 'information_schema'), (13001, 'tacit');
INSERT INTO information.schemata (schema_name) SELECT nspname FROM pg.pg_namespace;
INSERT INTO pg.pg_roles (oid, rolname, rolsuper, rolinherit, rolcanlogin, rolcreaterole, rolcreatedb, rolreplication)
    VALUES (10, 'tacit', false, true, false, false, false, false);
INSERT INTO pg.pg_am VALUES (2, 'heap', 'heap_tableam_handler', 't');
