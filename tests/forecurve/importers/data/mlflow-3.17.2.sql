CREATE TABLE "experiments" (
	experiment_id INTEGER NOT NULL, 
	name VARCHAR(256) NOT NULL, 
	artifact_location VARCHAR(256), 
	lifecycle_stage VARCHAR(32), 
	creation_time BIGINT, 
	last_update_time BIGINT, 
	workspace VARCHAR(63) DEFAULT 'default' NOT NULL, 
	CONSTRAINT experiment_pk PRIMARY KEY (experiment_id), 
	CONSTRAINT experiments_lifecycle_stage CHECK (lifecycle_stage IN ('active', 'deleted')), 
	CONSTRAINT uq_experiments_workspace_name UNIQUE (workspace, name)
);
INSERT INTO "experiments" VALUES (0, 'Default', '', 'active', 1795857062030, 1795857062030, 'default');
INSERT INTO "experiments" VALUES (1, 'gsm8k', '', 'active', 1795857062033, 1795857062033, 'default');
CREATE TABLE "metrics" (
	"key" VARCHAR(250) NOT NULL, 
	value FLOAT NOT NULL, 
	timestamp BIGINT NOT NULL, 
	run_uuid VARCHAR(32) NOT NULL, 
	step BIGINT DEFAULT '0' NOT NULL, 
	is_nan BOOLEAN DEFAULT '0' NOT NULL, 
	CONSTRAINT metric_pk PRIMARY KEY ("key", timestamp, step, run_uuid, value, is_nan), 
	FOREIGN KEY(run_uuid) REFERENCES runs (run_uuid), 
	CHECK (is_nan IN (0, 1))
);
INSERT INTO "metrics" VALUES ('val/acc', 0.2, 1795857062079, 'b05c5d36def84f9dbad7d92766eb9c20', 0, 0);
INSERT INTO "metrics" VALUES ('train/loss', 1.0, 1795857062079, 'b05c5d36def84f9dbad7d92766eb9c20', 0, 0);
INSERT INTO "metrics" VALUES ('tokens', 1000.0, 1795857062083, 'b05c5d36def84f9dbad7d92766eb9c20', 0, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.30000000000000004, 1795857062085, 'b05c5d36def84f9dbad7d92766eb9c20', 10, 0);
INSERT INTO "metrics" VALUES ('train/loss', 0.9, 1795857062085, 'b05c5d36def84f9dbad7d92766eb9c20', 10, 0);
INSERT INTO "metrics" VALUES ('tokens', 11000.0, 1795857062089, 'b05c5d36def84f9dbad7d92766eb9c20', 10, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.4, 1795857062091, 'b05c5d36def84f9dbad7d92766eb9c20', 20, 0);
INSERT INTO "metrics" VALUES ('train/loss', 0.8, 1795857062091, 'b05c5d36def84f9dbad7d92766eb9c20', 20, 0);
INSERT INTO "metrics" VALUES ('tokens', 21000.0, 1795857062094, 'b05c5d36def84f9dbad7d92766eb9c20', 20, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.0, 1795857062097, 'b05c5d36def84f9dbad7d92766eb9c20', 40, 1);
INSERT INTO "metrics" VALUES ('train/loss', 1.7976931348623157e+308, 1795857062099, 'b05c5d36def84f9dbad7d92766eb9c20', 40, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.2, 1795857062113, '8384f567973045c8a8ac08cacc6d2441', 0, 0);
INSERT INTO "metrics" VALUES ('train/loss', 1.0, 1795857062113, '8384f567973045c8a8ac08cacc6d2441', 0, 0);
INSERT INTO "metrics" VALUES ('tokens', 1000.0, 1795857062116, '8384f567973045c8a8ac08cacc6d2441', 0, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.30000000000000004, 1795857062118, '8384f567973045c8a8ac08cacc6d2441', 10, 0);
INSERT INTO "metrics" VALUES ('train/loss', 0.9, 1795857062118, '8384f567973045c8a8ac08cacc6d2441', 10, 0);
INSERT INTO "metrics" VALUES ('tokens', 11000.0, 1795857062121, '8384f567973045c8a8ac08cacc6d2441', 10, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.4, 1795857062123, '8384f567973045c8a8ac08cacc6d2441', 20, 0);
INSERT INTO "metrics" VALUES ('train/loss', 0.8, 1795857062123, '8384f567973045c8a8ac08cacc6d2441', 20, 0);
INSERT INTO "metrics" VALUES ('tokens', 21000.0, 1795857062126, '8384f567973045c8a8ac08cacc6d2441', 20, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.0, 1795857062128, '8384f567973045c8a8ac08cacc6d2441', 40, 1);
INSERT INTO "metrics" VALUES ('train/loss', 1.7976931348623157e+308, 1795857062130, '8384f567973045c8a8ac08cacc6d2441', 40, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.2, 1795857062141, '04fe04caa7614f0386bcd115ee696bc5', 0, 0);
INSERT INTO "metrics" VALUES ('train/loss', 1.0, 1795857062141, '04fe04caa7614f0386bcd115ee696bc5', 0, 0);
INSERT INTO "metrics" VALUES ('tokens', 1000.0, 1795857062144, '04fe04caa7614f0386bcd115ee696bc5', 0, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.30000000000000004, 1795857062146, '04fe04caa7614f0386bcd115ee696bc5', 10, 0);
INSERT INTO "metrics" VALUES ('train/loss', 0.9, 1795857062146, '04fe04caa7614f0386bcd115ee696bc5', 10, 0);
INSERT INTO "metrics" VALUES ('tokens', 11000.0, 1795857062149, '04fe04caa7614f0386bcd115ee696bc5', 10, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.4, 1795857062151, '04fe04caa7614f0386bcd115ee696bc5', 20, 0);
INSERT INTO "metrics" VALUES ('train/loss', 0.8, 1795857062151, '04fe04caa7614f0386bcd115ee696bc5', 20, 0);
INSERT INTO "metrics" VALUES ('tokens', 21000.0, 1795857062153, '04fe04caa7614f0386bcd115ee696bc5', 20, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.0, 1795857062156, '04fe04caa7614f0386bcd115ee696bc5', 40, 1);
INSERT INTO "metrics" VALUES ('train/loss', 1.7976931348623157e+308, 1795857062158, '04fe04caa7614f0386bcd115ee696bc5', 40, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.2, 1795857062167, '9b425b6f37734ab28badb2498a02bbed', 0, 0);
INSERT INTO "metrics" VALUES ('train/loss', 1.0, 1795857062167, '9b425b6f37734ab28badb2498a02bbed', 0, 0);
INSERT INTO "metrics" VALUES ('tokens', 1000.0, 1795857062170, '9b425b6f37734ab28badb2498a02bbed', 0, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.30000000000000004, 1795857062171, '9b425b6f37734ab28badb2498a02bbed', 10, 0);
INSERT INTO "metrics" VALUES ('train/loss', 0.9, 1795857062171, '9b425b6f37734ab28badb2498a02bbed', 10, 0);
INSERT INTO "metrics" VALUES ('tokens', 11000.0, 1795857062174, '9b425b6f37734ab28badb2498a02bbed', 10, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.4, 1795857062176, '9b425b6f37734ab28badb2498a02bbed', 20, 0);
INSERT INTO "metrics" VALUES ('train/loss', 0.8, 1795857062176, '9b425b6f37734ab28badb2498a02bbed', 20, 0);
INSERT INTO "metrics" VALUES ('tokens', 21000.0, 1795857062179, '9b425b6f37734ab28badb2498a02bbed', 20, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.0, 1795857062181, '9b425b6f37734ab28badb2498a02bbed', 40, 1);
INSERT INTO "metrics" VALUES ('train/loss', 1.7976931348623157e+308, 1795857062183, '9b425b6f37734ab28badb2498a02bbed', 40, 0);
INSERT INTO "metrics" VALUES ('val/acc', 0.9, 1795857062197, '94b567ea39e74331a2ab737665bd5058', 1, 0);
CREATE TABLE "params" (
	"key" VARCHAR(250) NOT NULL, 
	value VARCHAR(8000) NOT NULL, 
	run_uuid VARCHAR(32) NOT NULL, 
	CONSTRAINT param_pk PRIMARY KEY ("key", run_uuid), 
	FOREIGN KEY(run_uuid) REFERENCES runs (run_uuid)
);
INSERT INTO "params" VALUES ('seed', '3', 'b05c5d36def84f9dbad7d92766eb9c20');
INSERT INTO "params" VALUES ('seed', '4', '8384f567973045c8a8ac08cacc6d2441');
INSERT INTO "params" VALUES ('seed', '4', '04fe04caa7614f0386bcd115ee696bc5');
CREATE TABLE "runs" (
	run_uuid VARCHAR(32) NOT NULL, 
	name VARCHAR(250), 
	source_type VARCHAR(20), 
	source_name VARCHAR(500), 
	entry_point_name VARCHAR(50), 
	user_id VARCHAR(256), 
	status VARCHAR(9), 
	start_time BIGINT, 
	end_time BIGINT, 
	source_version VARCHAR(50), 
	lifecycle_stage VARCHAR(20), 
	artifact_uri VARCHAR(200), 
	experiment_id INTEGER, deleted_time BIGINT, 
	CONSTRAINT run_pk PRIMARY KEY (run_uuid), 
	CONSTRAINT source_type CHECK (source_type IN ('NOTEBOOK', 'JOB', 'LOCAL', 'UNKNOWN', 'PROJECT')), 
	CONSTRAINT runs_lifecycle_stage CHECK (lifecycle_stage IN ('active', 'deleted')), 
	FOREIGN KEY(experiment_id) REFERENCES experiments (experiment_id), 
	CHECK (status IN ('SCHEDULED', 'FAILED', 'FINISHED', 'RUNNING', 'KILLED'))
);
INSERT INTO "runs" VALUES ('b05c5d36def84f9dbad7d92766eb9c20', 'grpo', 'UNKNOWN', '', '', '', 'FINISHED', 1795857062067, 1795857062101, '', 'active', '', 1, NULL);
INSERT INTO "runs" VALUES ('8384f567973045c8a8ac08cacc6d2441', 'grpo', 'UNKNOWN', '', '', '', 'FINISHED', 1795857062108, 1795857062132, '', 'active', '', 1, NULL);
INSERT INTO "runs" VALUES ('04fe04caa7614f0386bcd115ee696bc5', 'grpo', 'UNKNOWN', '', '', '', 'FINISHED', 1795857062136, 1795857062160, '', 'active', '', 1, NULL);
INSERT INTO "runs" VALUES ('9b425b6f37734ab28badb2498a02bbed', 'cispo', 'UNKNOWN', '', '', '', 'FINISHED', 1795857062164, 1795857062186, '', 'active', '', 0, NULL);
INSERT INTO "runs" VALUES ('571ab9d0c74d4dafa16c9f36f967e236', 'empty', 'UNKNOWN', '', '', '', 'FINISHED', 1795857062188, 1795857062192, '', 'active', '', 0, NULL);
INSERT INTO "runs" VALUES ('94b567ea39e74331a2ab737665bd5058', 'gone', 'UNKNOWN', '', '', '', 'FINISHED', 1795857062194, 1795857062199, '', 'deleted', '', 0, 1795857062202);
