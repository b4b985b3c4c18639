-- Version 3: version 2, unchanged, and the work of agents: tasks, leases, reviews, locks, occupancy,
-- invocations. The log is the truth; every table under "Projections" can be folded from it; the
-- tables under "Volatile" are neither in the log nor compared after a rebuild.
-- Times are integer milliseconds. Released versions never change: the next one is v4.sql.

-- ---------------------------------------------------------------- Stamp

CREATE TABLE stamp (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  schema_version INTEGER NOT NULL CHECK (schema_version >= 2),
  schema_hash TEXT NOT NULL CHECK (length(schema_hash) = 64 AND schema_hash NOT GLOB '*[^0-9a-f]*'),
  fold_version INTEGER NOT NULL CHECK (fold_version >= 1)
) STRICT;

CREATE TRIGGER stamp_stays BEFORE DELETE ON stamp
BEGIN SELECT RAISE(ABORT, 'the stamp is never deleted'); END;

-- ---------------------------------------------------------------- The log

-- A stream is named by the seq of its first event. `previous` is the last event of the stream that
-- the writer saw: (stream, previous) is unique, so of two that saw the same one only one appends.
CREATE TABLE log (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id BLOB NOT NULL CHECK (length(event_id) = 16),
  stream INTEGER NOT NULL CHECK (stream >= 1 AND stream <= seq),
  previous INTEGER NOT NULL CHECK (previous >= 0 AND previous < seq),
  at_ms INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (length(kind) >= 1),
  actor TEXT NOT NULL CHECK (length(actor) >= 1),
  op_id TEXT,
  op_digest BLOB CHECK (length(op_digest) = 16),
  answers INTEGER,
  body TEXT NOT NULL,
  payload BLOB,
  CHECK ((previous = 0) = (stream = seq)),
  CHECK ((op_id IS NULL) = (op_digest IS NULL)),
  CHECK ((answers IS NULL) OR (kind = 'reply_posted')),
  CHECK ((kind <> 'reply_posted') OR (answers IS NOT NULL AND answers < stream))
) STRICT;

CREATE UNIQUE INDEX log_stream ON log (stream, previous);
CREATE UNIQUE INDEX log_op ON log (actor, op_id) WHERE op_id IS NOT NULL;
CREATE UNIQUE INDEX log_answers ON log (answers) WHERE answers IS NOT NULL;

-- The streams that the running transaction forgets; empty outside of it.
CREATE TABLE forgetting (
  stream INTEGER PRIMARY KEY
) STRICT;

CREATE TRIGGER log_is_never_edited BEFORE UPDATE ON log
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER log_forgets_whole_streams BEFORE DELETE ON log
WHEN NOT EXISTS (SELECT 1 FROM forgetting WHERE stream = OLD.stream)
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TRIGGER log_only_rises BEFORE INSERT ON log
WHEN NEW.seq <= (SELECT max(seq) FROM log)
BEGIN SELECT RAISE(ABORT, 'seq only rises'); END;

CREATE TRIGGER log_streams_are_chains BEFORE INSERT ON log
WHEN NEW.previous > 0
  AND NOT EXISTS (SELECT 1 FROM log WHERE seq = NEW.previous AND stream = NEW.stream)
BEGIN SELECT RAISE(ABORT, 'previous is not of this stream'); END;

-- ---------------------------------------------------------------- Projections

CREATE TABLE runs (
  stream INTEGER PRIMARY KEY,
  epoch TEXT NOT NULL UNIQUE,
  program TEXT NOT NULL,
  fold_version INTEGER NOT NULL,
  started_at_ms INTEGER NOT NULL,
  stopped_at_ms INTEGER,
  jumped_ms INTEGER NOT NULL DEFAULT 0,
  last_seq INTEGER NOT NULL
) STRICT;

CREATE TABLE agents (
  stream INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) >= 1),
  client TEXT NOT NULL,
  workspace TEXT,
  capabilities TEXT NOT NULL,
  metadata TEXT NOT NULL,
  session TEXT,
  ttl_ms INTEGER NOT NULL CHECK (ttl_ms > 0),
  pid INTEGER,
  start_token TEXT,
  boot_id TEXT,
  host TEXT,
  pid_namespace TEXT,
  registered_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER,
  retired_at_ms INTEGER,
  last_seq INTEGER NOT NULL,
  CHECK (session IS NULL OR retired_at_ms IS NULL)
) STRICT;

CREATE INDEX agents_process ON agents (boot_id, pid, start_token)
WHERE start_token IS NOT NULL AND session IS NOT NULL;
CREATE INDEX agents_retired ON agents (retired_at_ms) WHERE retired_at_ms IS NOT NULL;

CREATE TABLE subscriptions (
  topic TEXT NOT NULL,
  agent TEXT NOT NULL,
  last_seq INTEGER NOT NULL,
  PRIMARY KEY (topic, agent)
) STRICT, WITHOUT ROWID;

CREATE INDEX subscriptions_agent ON subscriptions (agent);

-- The payload stays in the log: `stream` is the seq of the event that holds it.
CREATE TABLE messages (
  stream INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) >= 1),
  type TEXT NOT NULL CHECK (type IN (
    'event', 'request', 'response', 'handoff', 'human_request', 'human_response', 'system')),
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  topic TEXT NOT NULL,
  priority INTEGER NOT NULL CHECK (priority BETWEEN 1 AND 9),
  posted_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  correlation_id TEXT,
  trace_id TEXT,
  cause TEXT,
  answer TEXT,
  settled TEXT CHECK (settled IN ('answered', 'accepted', 'declined', 'dead')),
  last_seq INTEGER NOT NULL
) STRICT;

CREATE INDEX messages_trace ON messages (trace_id) WHERE trace_id IS NOT NULL;
CREATE INDEX messages_correlation ON messages (correlation_id, sender)
WHERE correlation_id IS NOT NULL AND type IN ('request', 'handoff');
CREATE INDEX messages_owed ON messages (recipient, stream)
WHERE settled IS NULL AND type IN ('request', 'handoff');
CREATE INDEX messages_awaited ON messages (sender, stream)
WHERE settled IS NULL AND type IN ('request', 'handoff');

CREATE TRIGGER messages_have_one_answer BEFORE UPDATE OF answer ON messages
WHEN OLD.answer IS NOT NULL AND NEW.answer IS NOT OLD.answer
BEGIN SELECT RAISE(ABORT, 'a request has one answer'); END;

CREATE TRIGGER messages_go_with_their_stream BEFORE DELETE ON messages
WHEN NOT EXISTS (SELECT 1 FROM forgetting WHERE stream = OLD.stream)
BEGIN SELECT RAISE(ABORT, 'a message goes with its stream'); END;

-- One message with one receiver; `due_at_ms` is when the hub must act and null once it is closed.
CREATE TABLE deliveries (
  message INTEGER NOT NULL,
  receiver TEXT NOT NULL CHECK (length(receiver) >= 1),
  state TEXT NOT NULL CHECK (state IN ('queued', 'claimed', 'acked', 'dead', 'purged')),
  priority INTEGER NOT NULL,
  attempts INTEGER NOT NULL CHECK (attempts >= 0),
  expires_at_ms INTEGER NOT NULL,
  due_at_ms INTEGER,
  claim TEXT,
  closed_at_ms INTEGER,
  closed_seq INTEGER,
  reason TEXT,
  last_error TEXT,
  replayed_as TEXT,
  last_seq INTEGER NOT NULL,
  PRIMARY KEY (message, receiver),
  CHECK ((state IN ('queued', 'claimed')) = (due_at_ms IS NOT NULL)),
  CHECK ((state IN ('queued', 'claimed')) = (closed_seq IS NULL)),
  CHECK ((state = 'claimed') = (claim IS NOT NULL)),
  CHECK (state <> 'dead' OR reason IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX deliveries_inbox ON deliveries (receiver, priority DESC, message)
WHERE state = 'queued';
CREATE INDEX deliveries_claimed ON deliveries (receiver, message) WHERE state = 'claimed';
CREATE INDEX deliveries_due ON deliveries (due_at_ms) WHERE due_at_ms IS NOT NULL;
CREATE INDEX deliveries_dead ON deliveries (closed_seq) WHERE state = 'dead';
CREATE INDEX deliveries_dead_receiver ON deliveries (receiver, closed_seq) WHERE state = 'dead';

CREATE TRIGGER deliveries_stay_closed BEFORE UPDATE OF state ON deliveries
WHEN OLD.closed_seq IS NOT NULL AND NEW.state IS NOT OLD.state
  AND NOT (OLD.state = 'dead' AND NEW.state IN ('acked', 'purged'))
BEGIN SELECT RAISE(ABORT, 'a closed delivery stays closed'); END;

CREATE TRIGGER deliveries_count_up BEFORE UPDATE OF attempts ON deliveries
WHEN NEW.attempts < OLD.attempts
BEGIN SELECT RAISE(ABORT, 'attempts are never taken back'); END;

CREATE TRIGGER deliveries_go_with_their_stream BEFORE DELETE ON deliveries
WHEN NOT EXISTS (SELECT 1 FROM forgetting WHERE stream = OLD.message)
BEGIN SELECT RAISE(ABORT, 'a delivery goes with its stream'); END;

-- Prompt and schema stay in the opening event, the answer in the closing one (`closed_seq`);
-- answers of captcha and credential are in no event.
CREATE TABLE human_requests (
  stream INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) >= 1),
  requester TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('captcha', 'approval', 'credential', 'choice', 'text')),
  state TEXT NOT NULL CHECK (state IN (
    'pending', 'accepted', 'declined', 'cancelled', 'timed_out', 'withdrawn')),
  default_action TEXT NOT NULL CHECK (default_action IN ('decline', 'cancel', 'timeout_continue')),
  channel TEXT NOT NULL CHECK (channel IN ('terminal', 'pipe', 'file_polling')),
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  correlation_id TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  opened_at_ms INTEGER NOT NULL,
  deadline_ms INTEGER NOT NULL,
  closed_at_ms INTEGER,
  closed_seq INTEGER,
  answered_by TEXT,
  response TEXT,
  last_seq INTEGER NOT NULL,
  CHECK ((state = 'pending') = (closed_seq IS NULL)),
  CHECK ((state = 'pending') = (closed_at_ms IS NULL))
) STRICT;

CREATE INDEX human_requests_deadline ON human_requests (deadline_ms) WHERE closed_seq IS NULL;
CREATE INDEX human_requests_pending ON human_requests (state) WHERE state = 'pending';
CREATE INDEX human_requests_trace ON human_requests (trace_id);
CREATE INDEX human_requests_closed ON human_requests (closed_at_ms) WHERE closed_at_ms IS NOT NULL;

CREATE TRIGGER human_requests_have_one_outcome BEFORE UPDATE OF state ON human_requests
WHEN OLD.state <> 'pending' AND NEW.state IS NOT OLD.state
BEGIN SELECT RAISE(ABORT, 'a closed request stays closed'); END;

CREATE TRIGGER human_requests_go_with_their_stream BEFORE DELETE ON human_requests
WHEN NOT EXISTS (SELECT 1 FROM forgetting WHERE stream = OLD.stream)
BEGIN SELECT RAISE(ABORT, 'a request goes with its stream'); END;

-- A task stays as a tombstone when it is deleted, so that its number is never used again.
CREATE TABLE tasks (
  stream INTEGER PRIMARY KEY,
  room TEXT NOT NULL CHECK (length(room) >= 1),
  number INTEGER NOT NULL CHECK (number >= 1),
  status TEXT NOT NULL CHECK (status IN (
    'proposed', 'accepted', 'assigned', 'in_progress', 'blocked', 'in_review', 'merged', 'done',
    'cancelled')),
  title TEXT NOT NULL CHECK (length(title) >= 1),
  detail TEXT NOT NULL,
  priority INTEGER NOT NULL CHECK (priority BETWEEN 1 AND 9),
  author TEXT NOT NULL,
  client_key TEXT,
  parent INTEGER,
  exclusive TEXT,
  source_message TEXT,
  source_task TEXT,
  branch TEXT,
  pr TEXT,
  output TEXT,
  label TEXT,
  assignee TEXT,
  instance TEXT,
  session TEXT,
  note TEXT,
  rounds INTEGER NOT NULL DEFAULT 0 CHECK (rounds >= 0),
  trace_id TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  changed_at_ms INTEGER NOT NULL,
  closed_at_ms INTEGER,
  deleted_at_ms INTEGER,
  last_seq INTEGER NOT NULL,
  UNIQUE (room, number),
  CHECK ((status IN ('done', 'cancelled')) = (closed_at_ms IS NOT NULL))
) STRICT;

CREATE UNIQUE INDEX tasks_client_key ON tasks (room, client_key)
WHERE client_key IS NOT NULL;
CREATE INDEX tasks_open ON tasks (room, number)
WHERE closed_at_ms IS NULL AND deleted_at_ms IS NULL;
CREATE INDEX tasks_ready ON tasks (room, priority DESC, number)
WHERE status = 'accepted' AND deleted_at_ms IS NULL;
CREATE INDEX tasks_exclusive ON tasks (room, exclusive)
WHERE exclusive IS NOT NULL AND closed_at_ms IS NULL AND deleted_at_ms IS NULL;
CREATE INDEX tasks_children ON tasks (parent) WHERE parent IS NOT NULL;
CREATE INDEX tasks_source_message ON tasks (room, source_message)
WHERE source_message IS NOT NULL AND closed_at_ms IS NULL AND deleted_at_ms IS NULL;
CREATE INDEX tasks_source_task ON tasks (room, source_task)
WHERE source_task IS NOT NULL AND closed_at_ms IS NULL AND deleted_at_ms IS NULL;
CREATE INDEX tasks_branch ON tasks (room, branch COLLATE NOCASE)
WHERE branch IS NOT NULL AND closed_at_ms IS NULL AND deleted_at_ms IS NULL;
CREATE INDEX tasks_pr ON tasks (room, pr COLLATE NOCASE)
WHERE pr IS NOT NULL AND closed_at_ms IS NULL AND deleted_at_ms IS NULL;
CREATE INDEX tasks_output ON tasks (room, output COLLATE NOCASE)
WHERE output IS NOT NULL AND closed_at_ms IS NULL AND deleted_at_ms IS NULL;
CREATE INDEX tasks_assignee ON tasks (assignee)
WHERE assignee IS NOT NULL AND closed_at_ms IS NULL AND deleted_at_ms IS NULL;
CREATE INDEX tasks_trace ON tasks (trace_id);
CREATE INDEX tasks_closed ON tasks (closed_at_ms) WHERE closed_at_ms IS NOT NULL;
CREATE INDEX tasks_deleted ON tasks (deleted_at_ms) WHERE deleted_at_ms IS NOT NULL;
CREATE INDEX tasks_moved ON tasks (room, last_seq);

CREATE TRIGGER tasks_go_with_their_stream BEFORE DELETE ON tasks
WHEN NOT EXISTS (SELECT 1 FROM forgetting WHERE stream = OLD.stream)
BEGIN SELECT RAISE(ABORT, 'a task goes with its stream'); END;

-- Both are streams of tasks; an edge whose other end is gone holds nothing up.
CREATE TABLE blockers (
  task INTEGER NOT NULL,
  blocker INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  PRIMARY KEY (task, blocker),
  CHECK (task <> blocker)
) STRICT, WITHOUT ROWID;

CREATE INDEX blockers_of ON blockers (blocker);

CREATE TABLE artifacts (
  task INTEGER NOT NULL,
  identity TEXT NOT NULL CHECK (length(identity) >= 1),
  kind TEXT NOT NULL CHECK (length(kind) >= 1),
  attached_by TEXT NOT NULL,
  attached_at_ms INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  PRIMARY KEY (task, identity)
) STRICT, WITHOUT ROWID;

CREATE INDEX artifacts_identity ON artifacts (identity COLLATE NOCASE);

-- The history of every task; at most one row of a task is active.
CREATE TABLE work_leases (
  id TEXT PRIMARY KEY CHECK (length(id) >= 1),
  task INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'released', 'revoked', 'expired')),
  epoch INTEGER NOT NULL CHECK (epoch >= 0),
  agent TEXT NOT NULL CHECK (length(agent) >= 1),
  session TEXT NOT NULL CHECK (length(session) >= 1),
  instance TEXT,
  label TEXT,
  worktree TEXT,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  ttl_ms INTEGER CHECK (ttl_ms > 0),
  expires_at_ms INTEGER,
  warned_at_ms INTEGER,
  ended_at_ms INTEGER,
  reason TEXT,
  successor TEXT,
  last_seq INTEGER NOT NULL,
  UNIQUE (task, epoch),
  CHECK ((status = 'active') = (ended_at_ms IS NULL)),
  CHECK ((ttl_ms IS NULL) = (expires_at_ms IS NULL))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX work_leases_active ON work_leases (task) WHERE status = 'active';
CREATE INDEX work_leases_session ON work_leases (session) WHERE status = 'active';
CREATE INDEX work_leases_due ON work_leases (expires_at_ms)
WHERE status = 'active' AND expires_at_ms IS NOT NULL;

CREATE TRIGGER work_leases_stay_ended BEFORE UPDATE OF status ON work_leases
WHEN OLD.status <> 'active' AND NEW.status IS NOT OLD.status
BEGIN SELECT RAISE(ABORT, 'an ended lease stays ended'); END;

CREATE TRIGGER work_leases_keep_their_holder
BEFORE UPDATE OF task, epoch, agent, session ON work_leases
WHEN NEW.task IS NOT OLD.task OR NEW.epoch IS NOT OLD.epoch OR NEW.agent IS NOT OLD.agent
  OR NEW.session IS NOT OLD.session
BEGIN SELECT RAISE(ABORT, 'a lease never changes its holder'); END;

-- The command ends the lease first, then changes the task: labels are never compared.
CREATE TRIGGER tasks_agree_with_their_lease
BEFORE UPDATE OF status, assignee, session ON tasks
WHEN EXISTS (SELECT 1 FROM work_leases l WHERE l.task = NEW.stream AND l.status = 'active'
  AND (NEW.status NOT IN ('assigned', 'in_progress', 'blocked', 'in_review')
    OR l.agent IS NOT NEW.assignee OR l.session IS NOT NEW.session))
BEGIN SELECT RAISE(ABORT, 'an active lease does not match'); END;

CREATE TRIGGER work_leases_agree_with_their_task BEFORE INSERT ON work_leases
WHEN NEW.status = 'active' AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.stream = NEW.task
  AND t.status IN ('assigned', 'in_progress', 'blocked', 'in_review')
  AND t.assignee IS NEW.agent AND t.session IS NEW.session)
BEGIN SELECT RAISE(ABORT, 'a lease needs a task that is its holder''s'); END;

CREATE TABLE review_leases (
  id TEXT PRIMARY KEY CHECK (length(id) >= 1),
  task INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'released', 'revoked')),
  agent TEXT NOT NULL CHECK (length(agent) >= 1),
  session TEXT NOT NULL CHECK (length(session) >= 1),
  created_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER,
  reason TEXT,
  last_seq INTEGER NOT NULL,
  CHECK ((status = 'active') = (ended_at_ms IS NULL))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX review_leases_active ON review_leases (task) WHERE status = 'active';
CREATE INDEX review_leases_session ON review_leases (session) WHERE status = 'active';
CREATE INDEX review_leases_task ON review_leases (task);

-- A lock of a room has no task. Each lock is a stream of its own.
CREATE TABLE locks (
  stream INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) >= 1),
  room TEXT NOT NULL CHECK (length(room) >= 1),
  task INTEGER,
  reason TEXT NOT NULL CHECK (reason IN (
    'human_stop', 'duplicate', 'manager_pause', 'revoked', 'policy')),
  note TEXT,
  set_by TEXT NOT NULL,
  set_at_ms INTEGER NOT NULL,
  cleared_by TEXT,
  cleared_at_ms INTEGER,
  last_seq INTEGER NOT NULL,
  CHECK ((cleared_by IS NULL) = (cleared_at_ms IS NULL))
) STRICT;

CREATE UNIQUE INDEX locks_active ON locks (room, coalesce(task, 0)) WHERE cleared_at_ms IS NULL;
CREATE INDEX locks_task ON locks (task) WHERE task IS NOT NULL;
CREATE INDEX locks_cleared ON locks (cleared_at_ms) WHERE cleared_at_ms IS NOT NULL;

-- One row of an agent answers "busy?": the hold of a turn's delivery, the lock of a terminal, the
-- invocation that runs in a terminal. The slices are set and cleared independently.
CREATE TABLE occupancy (
  agent TEXT PRIMARY KEY CHECK (length(agent) >= 1),
  stream INTEGER NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0 CHECK (generation >= 0),
  hold TEXT UNIQUE,
  hold_holder TEXT,
  hold_message TEXT,
  hold_at_ms INTEGER,
  hold_until_ms INTEGER,
  terminal TEXT UNIQUE,
  terminal_holder TEXT,
  terminal_at_ms INTEGER,
  invocation TEXT UNIQUE,
  invocation_holder TEXT,
  invocation_at_ms INTEGER,
  last_seq INTEGER NOT NULL,
  CHECK ((hold IS NULL) = (hold_holder IS NULL)),
  CHECK ((hold IS NULL) = (hold_at_ms IS NULL)),
  CHECK ((hold IS NULL) = (hold_until_ms IS NULL)),
  CHECK ((terminal IS NULL) = (terminal_holder IS NULL)),
  CHECK ((terminal IS NULL) = (terminal_at_ms IS NULL)),
  CHECK ((invocation IS NULL) = (invocation_holder IS NULL)),
  CHECK ((invocation IS NULL) = (invocation_at_ms IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX occupancy_stream ON occupancy (stream);

CREATE TABLE invocations (
  stream INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) >= 1),
  kind TEXT NOT NULL CHECK (kind IN ('turn', 'terminal', 'tool')),
  agent TEXT NOT NULL CHECK (length(agent) >= 1),
  state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'lost')),
  holder TEXT NOT NULL,
  task INTEGER,
  title TEXT,
  trace_id TEXT,
  started_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER,
  is_late INTEGER NOT NULL DEFAULT 0 CHECK (is_late IN (0, 1)),
  outcome TEXT CHECK (outcome IN ('ok', 'failed', 'cancelled')),
  summary TEXT,
  error TEXT,
  evidence TEXT,
  notified_by TEXT,
  notified_at_ms INTEGER,
  last_seq INTEGER NOT NULL,
  CHECK ((state = 'running') = (ended_at_ms IS NULL)),
  CHECK ((state = 'finished') = (outcome IS NOT NULL)),
  CHECK ((notified_by IS NULL) = (notified_at_ms IS NULL))
) STRICT;

CREATE INDEX invocations_running ON invocations (stream) WHERE state = 'running';
CREATE INDEX invocations_agent ON invocations (agent, stream);
CREATE INDEX invocations_trace ON invocations (trace_id) WHERE trace_id IS NOT NULL;
CREATE INDEX invocations_task ON invocations (task) WHERE task IS NOT NULL;
CREATE INDEX invocations_ended ON invocations (ended_at_ms) WHERE ended_at_ms IS NOT NULL;

CREATE TRIGGER invocations_have_one_notifier BEFORE UPDATE OF notified_by ON invocations
WHEN OLD.notified_by IS NOT NULL AND NEW.notified_by IS NOT OLD.notified_by
BEGIN SELECT RAISE(ABORT, 'an invocation has one notifier'); END;

CREATE TRIGGER invocations_finish_once BEFORE UPDATE OF state ON invocations
WHEN OLD.state = 'finished' AND NEW.state IS NOT OLD.state
BEGIN SELECT RAISE(ABORT, 'a finished invocation stays finished'); END;

-- ---------------------------------------------------------------- Volatile

CREATE TABLE beats (
  agent TEXT PRIMARY KEY,
  seen_at_ms INTEGER NOT NULL,
  lease_expires_ms INTEGER NOT NULL,
  notified_seq INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Totals since the file was made, of all events up to `counted.seq`.
CREATE TABLE totals (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE counted (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  seq INTEGER NOT NULL,
  skipped INTEGER NOT NULL,
  forgotten_seq INTEGER NOT NULL,
  syncs INTEGER NOT NULL
) STRICT;

-- The last number that a room gave to a task; it outlives the tasks.
CREATE TABLE numbers (
  room TEXT PRIMARY KEY,
  last INTEGER NOT NULL CHECK (last >= 1)
) STRICT, WITHOUT ROWID;

-- The last sign of life of a work lease or an invocation; `sequence` is the client's counter, the
-- time of receipt the hub's.
CREATE TABLE pulses (
  id TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL,
  observed_at_ms INTEGER NOT NULL,
  received_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
