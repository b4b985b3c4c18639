#!/bin/sh
# Run a role's prompt through the right installed agent CLI, with a time-out.
#
# Hands over to `tfx route` where that works: the one of TFX_BIN, of the installation that wrote
# this file, or of PATH. Else it does the work itself, in plain POSIX sh with the usual tools, so
# that it runs from hooks, cron and agents whose PATH is empty. It knows no model name and passes no flag that switches a CLI's sandbox or approvals off:
# each CLI's own non-interactive default applies. `tfx-route.sh --help` explains the rest.

set -u
set +m # with job control the agent would not lead a session of its own

# role|preferred CLI|verb|effort|time-out in seconds|how callers should run it|profile
ROLES='executor|codex|run|high|1080|foreground|implement
build-fixer|codex|run|fast|540|foreground|implement
debugger|codex|run|high|900|background|implement
deep-executor|codex|run|deep|3600|background overseen|implement
architect|codex|run|deep|3600|background overseen|analyze
critic|codex|run|deep|3600|background overseen|analyze
planner|codex|run|deep|3600|foreground overseen|analyze
analyst|codex|run|deep|3600|foreground overseen|analyze
code-reviewer|codex|review|deep|1800|background|review
quality-reviewer|codex|review|deep|1800|background|review
security-reviewer|codex|review|deep|1800|background overseen|review
scientist|codex|run|high|1440|background|analyze
document-specialist|codex|run|high|1440|background|analyze
scientist-deep|codex|run|deep|3600|background|analyze
designer|gemini|run|high|900|background|docs
writer|gemini|run|fast|900|background|docs
spark|codex|run|light|180|foreground|minimal
explore|claude|native|normal|300|foreground|minimal
verifier|claude|native|normal|300|foreground|minimal
test-engineer|claude|native|normal|300|background|minimal
qa-tester|claude|native|normal|300|background|minimal'
CLIS='codex gemini claude copilot opencode'
PROFILES='auto implement analyze review docs minimal'

OUTPUT_CAP=51200  # bytes of output printed; the whole stays in the log
CONTEXT_CAP=32768 # bytes of a context file that are passed on
ERROR_CAP=8192    # bytes of the CLI's own error output repeated after a failure
TIMEOUT_MAX=86400 # below the age at which old logs are removed

help() {
    cat <<'END'
usage: tfx-route.sh ROLE PROMPT [PROFILE] [TIMEOUT] [CONTEXT]

Run PROMPT as ROLE through the agent CLI that suits it and print the result.

  ROLE     one of the table below
  PROMPT   the text, passed on byte for byte; `-` reads it from standard input,
           which also keeps it out of the process list
  PROFILE  auto (by role), implement, analyze, review, docs or minimal: which
           MCP servers the prompt is told of (by tfx; this script adds nothing)
  TIMEOUT  seconds, 1 to 86400; the table has the defaults. At the time-out the
           agent's whole process group gets TERM and 5 s later KILL
  CONTEXT  a text file added below the prompt, at most 32 KiB of it
An empty argument stands for the default. Where tfx works, `tfx route` does the
run and keeps its record (tfx jobs list); TFX_BIN=PATH names it, an empty
TFX_BIN leaves it out.

ROLE                 CLI           EFFORT  TIMEOUT  RUN IT IN THE
END
    while IFS='|' read -r h_role h_cli h_verb h_effort h_timeout h_mode _profile; do
        case $h_verb in
            run) ;;
            *) h_cli="$h_cli $h_verb" ;;
        esac
        printf '%-20s %-13s %-7s %7s  %s\n' "$h_role" "$h_cli" "$h_effort" "$h_timeout" "$h_mode"
    done <<END
$ROLES
END
    cat <<'END'

Which CLI: the one in the table, else the first installed one of codex, gemini,
claude, copilot, opencode. TFX_CLI_MODE=NAME forces one of them; auto is the
default. A `claude native` role called from within Claude Code (CLAUDECODE is
set) prints ROUTE_TYPE=claude-native and the task instead: do it yourself, or
set TFX_CLI_MODE=claude to have `claude -p` do it.

Where it looks, the first hit wins: PATH; ~/.local/bin, ~/bin; npm's prefix
(NPM_CONFIG_PREFIX, ~/.npmrc), ~/.npm-global, ~/.npm-packages; nvm (the default
alias, then newest first), fnm, volta, asdf, mise, nodenv, n; pnpm, bun, yarn;
~/.claude/local, ~/.opencode/bin; Homebrew; /usr/local/bin, /usr/bin, /bin,
/snap/bin; Nix profiles. TFX_ROUTE_DIRS=DIR:DIR replaces all but PATH. The agent
gets the same directories behind its PATH, so that it finds node and git.

What the agent may do is decided by its own configuration; nothing is switched
off here. Codex, for one, is read-only unless its config.toml says
sandbox_mode = "workspace-write", and Codex and Gemini refuse to start in a
directory they were not told to trust.

The result (standard output): a block with agent, cli, exit_code (the CLI's
own), elapsed and status (success, failed, timeout, crashed), then
`=== OUTPUT ===` and at most 50 KiB of output. What was cut, and everything of a
failed run, stays for a week in the directory named by `log:`.

Exit codes: 0 success; 1 the agent failed, crashed or timed out; 2 usage;
4 no usable CLI; 5 refused (no HOME, a NUL byte in the text); 130 interrupted.

  tfx-route.sh executor 'Make the tests in tests/api pass'
  git diff | tfx-route.sh code-reviewer - review 600
  TFX_CLI_MODE=claude tfx-route.sh explore 'Where is the retry logic?'
END
}

say() { printf 'tfx-route: %s\n' "$*" >&2; }

fail() { # STATUS MESSAGE...
    f_status=$1
    shift
    say "$*"
    exit "$f_status"
}

usage() { fail 2 "$*; see: tfx-route.sh --help"; }

one_line() { printf '%s' "$1" | LC_ALL=C tr '\000-\037\177' '?'; }

role_names() { printf '%s\n' "$ROLES" | sed 's/|.*//' | tr '\n' ' '; }

role_row() { # ROLE; sets role, preferred, verb, effort, timeout_s, mode, role_profile
    while IFS='|' read -r role preferred verb effort timeout_s mode role_profile; do
        [ "$role" = "$1" ] && return 0
    done <<END
$ROLES
END
    return 1
}

is_word_of() { # WORD LIST
    for w_one in $2; do
        [ "$w_one" = "$1" ] && return 0
    done
    return 1
}

# --- where CLIs live ------------------------------------------------------------------------

versions_in() { # DIR SUFFIX: each DIR/v<version>/SUFFIX, newest first
    for v_dir in "$1"/v[0-9]*; do
        [ -d "$v_dir" ] && printf '%s\n' "${v_dir##*/v}"
    done | sort -t . -k 1,1nr -k 2,2nr -k 3,3nr | while IFS= read -r v_name; do
        printf '%s\n' "$1/v$v_name/$2"
    done
}

nvm_dirs() {
    n_root=${NVM_DIR:-$HOME/.nvm}
    n_default=
    [ -r "$n_root/alias/default" ] && IFS= read -r n_default <"$n_root/alias/default"
    n_default=${n_default#v}
    case $n_default in
        [0-9]*)
            versions_in "$n_root/versions/node" bin | while IFS= read -r n_dir; do
                case $n_dir in
                    */v"$n_default"/bin | */v"$n_default".*/bin) printf '%s\n' "$n_dir" ;;
                esac
            done
            ;;
    esac
    versions_in "$n_root/versions/node" bin
}

npm_dirs() {
    p_prefix=${NPM_CONFIG_PREFIX:-${npm_config_prefix:-}}
    [ -n "$p_prefix" ] && printf '%s\n' "$p_prefix/bin"
    { cat "$HOME/.npmrc" 2>/dev/null && echo; } |
        sed -n 's/^[[:space:]]*prefix[[:space:]]*=[[:space:]]*//p' |
        sed -e 's/[[:space:]]*$//' -e 's/^"\(.*\)"$/\1/' | while IFS= read -r p_prefix; do
        case $p_prefix in
            [~]/*) p_prefix=$HOME/${p_prefix#??} ;;
            "\${HOME}/"*) p_prefix=$HOME/${p_prefix#????????} ;;
        esac
        printf '%s\n' "$p_prefix/bin"
    done
    printf '%s\n' "$HOME/.npm-global/bin" "$HOME/.npm-packages/bin"
}

usual_dirs() {
    if [ "${TFX_ROUTE_DIRS+set}" ]; then
        printf '%s\n' "$TFX_ROUTE_DIRS" | tr ':' '\n'
        return
    fi
    u_data=${XDG_DATA_HOME:-$HOME/.local/share}
    printf '%s\n' "$HOME/.local/bin" "$HOME/bin"
    npm_dirs
    nvm_dirs
    for u_fnm in "${FNM_DIR:-$u_data/fnm}" "$HOME/.fnm" "$HOME/Library/Application Support/fnm"; do
        printf '%s\n' "$u_fnm/aliases/default/bin"
        versions_in "$u_fnm/node-versions" installation/bin
    done
    printf '%s\n' "${VOLTA_HOME:-$HOME/.volta}/bin" \
        "${ASDF_DATA_DIR:-$HOME/.asdf}/shims" "$HOME/.asdf/bin" \
        "${MISE_DATA_DIR:-$u_data/mise}/shims" "$HOME/.nodenv/shims" \
        "${N_PREFIX:-$HOME/n}/bin" \
        "${PNPM_HOME:-$u_data/pnpm}" "$HOME/Library/pnpm" "${BUN_INSTALL:-$HOME/.bun}/bin" \
        "$HOME/.yarn/bin" "$HOME/.claude/local" "$HOME/.opencode/bin" \
        "${HOMEBREW_PREFIX:-/opt/homebrew}/bin" /opt/homebrew/bin \
        "$HOME/.linuxbrew/bin" /home/linuxbrew/.linuxbrew/bin \
        /usr/local/bin /usr/bin /bin /snap/bin \
        "$HOME/.nix-profile/bin" /nix/var/nix/profiles/default/bin /run/current-system/sw/bin
}

first_in() { # NAME DIRECTORIES (one a line); relative ones, the working directory, never count
    while IFS= read -r i_dir; do
        case $i_dir in
            /*) ;;
            *) continue ;;
        esac
        if [ -f "$i_dir/$1" ] && [ -x "$i_dir/$1" ]; then
            cli_dir=$i_dir
            return 0
        fi
    done <<END
$2
END
    return 1
}

find_cli() { # NAME; sets cli, cli_dir and, for one outside PATH, outside
    cli=$1
    outside=
    first_in "$1" "$path_dirs" && return 0
    outside=yes
    first_in "$1" "$known_dirs"
}

agent_path() { # the caller's PATH first; a CLI outside it brings its own node
    a_path=$caller_path
    [ -n "$outside" ] && a_path=$cli_dir${a_path:+:$a_path}
    while IFS= read -r a_dir; do
        case ":$a_path:" in
            *":$a_dir:"*) continue ;;
        esac
        case $a_dir in
            /*) [ -d "$a_dir" ] && a_path=${a_path:+$a_path:}$a_dir ;;
        esac
    done <<END
$known_dirs
/usr/local/bin
/usr/bin
/bin
END
    printf '%s' "$a_path"
}

# --- running --------------------------------------------------------------------------------

# Beside the agent runs a watch: it ends the agent's process group at the time-out, or when this
# script is gone. Children that left the group are known by their parents before the first signal.
# It has a session of its own, so that ending that session also ends its `sleep`.
# shellcheck disable=SC2016  # the shell that runs the watch expands this text
WATCH='
main=$1 agent=$2 left=$3 mark=$4
listing() {
    { ps -A -o pid= -o ppid= -o pgid= -o stat= || ps -o pid,ppid,pgid,stat; } 2>/dev/null
}
alive() { # zombies that nobody reaps, as in many containers, are not
    seen=$(listing)
    if [ -z "$seen" ]; then
        kill -0 "-$agent" 2>/dev/null
        return
    fi
    printf "%s\n" "$seen" | awk -v root="$agent" -v strays=" $strays" "
        \$4 !~ /^Z/ && (\$3 == root || index(strays, \" \" \$1 \"/\" \$3 \" \")) { found = 1 }
        END { exit !found }"
}
while [ "$left" -gt 0 ]; do
    nap=$left
    [ "$nap" -gt 5 ] && nap=5
    sleep "$nap"
    left=$((left - nap))
    kill -0 "$main" 2>/dev/null || break
done
tries=60
until kill -0 "-$agent" 2>/dev/null; do # gone, or it has not come to lead its group yet
    { [ "$tries" -gt 0 ] && kill -0 "$agent" 2>/dev/null; } || exit 0
    tries=$((tries - 1))
    sleep 1
done
: >"$mark"
strays=$(listing | awk -v root="$agent" "
    { parent[\$1] = \$2; group[\$1] = \$3 }
    END {
        do {
            grew = 0
            for (p in parent)
                if (!(p in kin) && (parent[p] == root || parent[p] in kin)) { kin[p] = 1; grew = 1 }
        } while (grew)
        for (p in kin) if (group[p] != root) printf \"%s/%s \", p, group[p]
    }")
kill -TERM "-$agent" 2>/dev/null
for one in $strays; do kill -TERM "${one%/*}" 2>/dev/null; done
fifths=25
while [ "$fifths" -gt 0 ] && alive; do
    if sleep 0.2 2>/dev/null; then fifths=$((fifths - 1)); else sleep 1; fifths=$((fifths - 5)); fi
done
kill -KILL "-$agent" 2>/dev/null
[ -z "$strays" ] || listing | while read -r pid parent group state; do
    for one in $strays; do
        [ "$one" = "$pid/$group" ] && kill -KILL "$pid" 2>/dev/null
    done
done
exit 0'

in_session() { # COMMAND...: replace this process, leading a session and a process group
    if command -v setsid >/dev/null 2>&1; then
        exec setsid "$@"
    fi
    exec perl -MPOSIX=setsid -e 'setsid(); exec { $ARGV[0] } @ARGV or exit 127' -- "$@"
}

agent='' leader='' watch='' launching='' interrupted=''

stop_watch() { # KILL, as a shell that was just forked can lose a TERM; twice, as it may fork
    kill -KILL "-$watch" 2>/dev/null || kill -KILL "$watch" 2>/dev/null
    wait "$watch" 2>/dev/null
    kill -KILL "-$watch" 2>/dev/null
    watch=
}

end_group() { # the rest of the agent's group, and at an interrupt the agent itself
    sh -c "$WATCH" tfx-route-watch "$$" "$agent" 0 /dev/null &
    e_watch=$!
    wait "$agent" 2>/dev/null # reaped at once, a zombie would look alive to the watch
    wait "$e_watch" 2>/dev/null
}

on_signal() {
    if [ -n "$launching" ]; then # the agent may run already while its number is not yet known
        interrupted=yes
        return
    fi
    trap '' INT TERM HUP
    [ -n "$watch" ] && stop_watch
    if [ -n "$leader" ] && ! kill -0 "-$leader" 2>/dev/null; then
        kill -KILL "$leader" 2>/dev/null # it does not lead a group yet
    fi
    [ -n "$agent" ] && end_group
    say 'interrupted; the agent and its process group were ended'
    exit 130
}

run_group() { # LIMIT STDIN STDOUT STDERR COMMAND...; sets code and timed_out
    g_limit=$1 g_in=$2 g_out=$3 g_err=$4
    shift 4
    if ! : >"$g_out" || ! : >"$g_err"; then
        fail 1 "cannot write to $run"
    fi
    timed_out='' launching=yes
    # Caught only here: bash and ksh can lose a signal that arrives in a `$(`, and before and after
    # the agent's time its default action is right.
    trap on_signal INT TERM HUP
    (
        umask "$caller_umask"
        in_session "$@"
    ) <"$g_in" >"$g_out" 2>"$g_err" &
    agent=$! leader=$!
    (in_session sh -c "$WATCH" tfx-route-watch "$$" "$agent" "$g_limit" "$run/timed-out") \
        </dev/null >/dev/null 2>&1 &
    watch=$! launching=''
    [ -n "$interrupted" ] && on_signal
    wait "$agent" 2>/dev/null
    code=$? leader=''
    [ "$code" -gt 256 ] && code=$((code - 128)) # ksh adds 256 to a signal, the others 128
    if [ -e "$run/timed-out" ]; then
        timed_out=yes
        wait "$watch" 2>/dev/null
        watch=
    else
        stop_watch
        # What a successful agent leaves running, a server say, was meant to stay.
        [ "$code" -eq 0 ] || end_group
    fi
    trap - INT TERM HUP
    agent=
}

help_mentions() { # TEXT COMMAND...: does the installed version's own help have it?
    m_text=$1
    shift
    run_group 30 /dev/null "$run/help" "$run/help-errors" "$@" --help
    rm -f "$run/timed-out"
    grep -q -e "$m_text" "$run/help" 2>/dev/null
}

choose_cli() { # CLIS; sets cli and cli_dir to the first usable one and PATH to what it needs
    for candidate in $1; do
        find_cli "$candidate" || continue
        PATH=$(agent_path)
        [ "$candidate" = copilot ] || return 0
        # AWS has a tool of this name.
        help_mentions 'GitHub Copilot' "$cli_dir/copilot" && return 0
        say "$cli_dir/copilot is not the GitHub Copilot CLI and is left out"
    done
    return 1
}

run_cli() {
    c_bin=$cli_dir/$cli
    c_level=
    case $effort in
        light | fast) c_level=low ;;
        high) c_level=high ;;
        deep) c_level=xhigh ;;
    esac
    case $cli in
        codex)
            set -- "$c_bin" exec
            [ "$verb" = review ] && help_mentions '^  *review  *' "$c_bin" exec &&
                set -- "$@" review
            [ -n "$c_level" ] && set -- "$@" -c "model_reasoning_effort=\"$c_level\""
            set -- "$@" -
            ;;
        gemini) # its levels are aliases of its own, not model names
            set -- "$c_bin"
            case $effort in
                light) set -- "$@" -m flash-lite ;;
                fast) set -- "$@" -m flash ;;
                high | deep) set -- "$@" -m pro ;;
            esac
            ;;
        claude)
            set -- "$c_bin" -p
            [ -n "$c_level" ] && help_mentions '--effort ' "$c_bin" &&
                set -- "$@" --effort "$c_level"
            ;;
        copilot)
            set -- "$c_bin" -s
            [ -n "$c_level" ] && help_mentions '--reasoning-effort ' "$c_bin" &&
                set -- "$@" --reasoning-effort "$c_level"
            ;;
        opencode) set -- "$c_bin" run ;; # its variants differ from provider to provider
    esac
    run_group "$timeout_s" "$run/prompt" "$run/stdout" "$run/stderr" "$@"
}

# --- text -----------------------------------------------------------------------------------

size_of() { wc -c <"$1" | tr -d ' '; }

kept_bytes() { # FILE CAP: the largest count up to CAP that does not cut a UTF-8 character
    if [ "$(size_of "$1")" -le "$2" ]; then
        size_of "$1"
        return
    fi
    # The last three bytes that fit and the first that does not.
    # shellcheck disable=SC2046  # four hexadecimal words
    set -- "$2" $(dd if="$1" bs=1 skip=$(($2 - 3)) count=4 2>/dev/null | od -An -tx1)
    case $5$4$3$2 in
        [!89ab]*) printf '%s' "$1" ;;
        ??[c-f]*) printf '%s' $(($1 - 1)) ;;
        ??[89ab]?[c-f]*) printf '%s' $(($1 - 2)) ;;
        ??[89ab]?[89ab]?[c-f]*) printf '%s' $(($1 - 3)) ;;
        *) printf '%s' "$1" ;; # not UTF-8
    esac
}

first_bytes() { [ "$2" -eq 0 ] || dd if="$1" bs="$2" count=1 2>/dev/null; } # FILE COUNT

add_context() { # FILE: append it to the prompt in a marked block
    x_size=$(size_of "$1")
    x_kept=$(kept_bytes "$1" "$CONTEXT_CAP")
    x_label=$(one_line "$1")
    if [ "$x_kept" -lt "$x_size" ]; then
        x_label="$x_label, the first $x_kept of $x_size bytes"
        context_notice="context file has $x_size bytes, the first $x_kept were passed on"
    fi
    {
        printf '\n\n--- context: %s ---\n' "$x_label"
        first_bytes "$1" "$x_kept"
        printf '\n--- end of context ---\n'
    } >>"$run/prompt"
}

last_lines() { # FILE CAP
    if [ "$(size_of "$1")" -le "$2" ]; then
        cat "$1"
    else
        tail -c "$2" "$1" | sed 1d
    fi
}

report() {
    status=success
    if [ -n "$timed_out" ]; then
        status=timeout
    elif [ "$code" -gt 128 ]; then
        status=crashed
    elif [ "$code" -ne 0 ]; then
        status=failed
    fi
    r_size=$(size_of "$run/stdout")
    r_kept=$(kept_bytes "$run/stdout" "$OUTPUT_CAP")
    printf '=== tfx-route ===\nagent: %s\ncli: %s\npath: %s\nprofile: %s\n' \
        "$role" "$cli" "$cli_dir/$cli" "$profile"
    printf 'exit_code: %s\nelapsed: %ss\nstatus: %s\n' "$code" "$elapsed_s" "$status"
    [ "$status" = timeout ] && printf 'issue: ended after the time-out of %s s\n' "$timeout_s"
    case $status:$code in
        failed:126 | failed:127)
            printf 'issue: the CLI did not start; is the interpreter it needs installed?\n'
            ;;
    esac
    [ -n "$context_notice" ] && printf 'notice: %s\n' "$context_notice"
    if [ "$r_kept" -lt "$r_size" ]; then
        keep_log=yes
        printf 'notice: output has %s bytes, the first %s are below\n' "$r_size" "$r_kept"
    fi
    [ "$status" = success ] || keep_log=yes
    [ -n "$keep_log" ] && printf 'log: %s\n' "$run"
    printf '=== OUTPUT ===\n'
    first_bytes "$run/stdout" "$r_kept"
    [ "$status" = success ] && return 0
    if [ -s "$run/stderr" ]; then
        say "the last error output of $cli:"
        last_lines "$run/stderr" "$ERROR_CAP" >&2
    fi
    return 1
}

make_run_dir() { # 0700 in tfx's state directory, else in the temporary one
    case ${XDG_STATE_HOME:-} in
        /*) d_base=$XDG_STATE_HOME/tfx/route ;;
        *) d_base=$HOME/.local/state/tfx/route ;;
    esac
    run=$d_base/run.$(date +%s).$$
    if mkdir -p "$d_base" 2>/dev/null && mkdir "$run" 2>/dev/null; then
        for d_old in "$d_base"/run.*; do
            kill -0 "${d_old##*.}" 2>/dev/null || rm -f "$d_old/prompt" # of a run that was killed
            [ -n "$(find "$d_old" -prune -type d -mtime +7 2>/dev/null)" ] && remove_run "$d_old"
        done
        return 0
    fi
    run=${TMPDIR:-/tmp}/tfx-route.$(date +%s).$$
    mkdir "$run" || { run='' && fail 1 "cannot write below $d_base or ${TMPDIR:-/tmp}"; }
}

remove_run() { # DIR: only what this script puts there
    for m_name in prompt stdout stderr help help-errors timed-out; do
        rm -f "$1/$m_name"
    done
    rmdir "$1" 2>/dev/null
}

run='' keep_log='' context_notice=''

clean_up() {
    [ -n "$run" ] || return 0
    if [ -n "$keep_log" ]; then
        rm -f "$run/prompt" "$run/help" "$run/help-errors" "$run/timed-out"
    else
        remove_run "$run"
    fi
}

# --- tfx ------------------------------------------------------------------------------------

rendered_tfx() { @TFX@ "$@"; } # setup writes the command of its own installation here

is_tfx_route() { # COMMAND...: another program on PATH may have the name
    "$@" route --help 2>/dev/null </dev/null | grep -q -e '--background'
}

find_tfx() { # sets tfx to the command that works
    tfx=
    if [ "${TFX_BIN+set}" ]; then
        case $TFX_BIN in
            '') return 1 ;;
            /*) is_tfx_route "$TFX_BIN" && tfx=$TFX_BIN && return 0 ;;
        esac
        say "TFX_BIN is not a tfx that can route: $(one_line "$TFX_BIN")"
    fi
    case $(rendered_tfx --version 2>/dev/null </dev/null) in
        'tfx '[0-9]*) tfx=rendered_tfx && return 0 ;;
    esac
    first_in tfx "$(printf '%s\n' "$caller_path" | tr ':' '\n')" || return 1
    is_tfx_route "$cli_dir/tfx" && tfx=$cli_dir/tfx
}

hand_over() { # ROLE PROMPT PROFILE TIMEOUT CONTEXT: becomes tfx; the prompt stays out of argv
    o_role=$1 o_prompt=$2 o_profile=$3 o_timeout=$4 o_context=$5
    if [ "$o_prompt" != - ]; then
        make_run_dir
        printf '%s' "$o_prompt" >"$run/prompt" || fail 1 "cannot write the prompt to $run"
        exec <"$run/prompt"
        remove_run "$run"
        run=
    fi
    set -- route "$o_role" -
    [ -n "$o_profile" ] && set -- "$@" "--profile=$o_profile"
    [ -n "$o_timeout" ] && set -- "$@" "--timeout=$o_timeout"
    [ -n "$o_context" ] && set -- "$@" "--context=$o_context"
    umask "$caller_umask"
    trap - EXIT
    PATH=$caller_path
    export PATH
    if [ "$tfx" = rendered_tfx ]; then
        exec @TFX@ "$@"
    fi
    exec "$tfx" "$@"
}

# --- the run --------------------------------------------------------------------------------

main() { # a function, so that the whole file is read before anything runs
    caller_path=${PATH-}
    caller_umask=$(umask)
    umask 077
    PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin
    export PATH

    case ${1-} in
        -h | --help)
            help
            exit 0
            ;;
        -*) usage "unknown option $(one_line "$1")" ;;
    esac
    if [ $# -lt 2 ] || [ $# -gt 5 ]; then
        usage 'needs ROLE and PROMPT, and takes PROFILE, TIMEOUT and CONTEXT'
    fi

    role_row "$1" || usage "unknown role $(one_line "$1"); the roles are $(role_names)"
    profile=${3:-auto}
    is_word_of "$profile" "$PROFILES" ||
        usage "unknown profile $(one_line "$profile"); the profiles are $PROFILES"
    [ "$profile" = auto ] && profile=$role_profile
    case ${4-} in
        '') ;;
        *[!0-9]* | ???????*) usage "TIMEOUT is not a number of seconds: $(one_line "$4")" ;;
        *) timeout_s=$(printf '%s' "$4" | sed 's/^0*//') ;;
    esac
    if [ "${timeout_s:-0}" -lt 1 ] || [ "$timeout_s" -gt "$TIMEOUT_MAX" ]; then
        usage "TIMEOUT has to be 1 to $TIMEOUT_MAX seconds: $4"
    fi
    context=${5-}
    if [ -n "$context" ]; then
        [ -e "$context" ] || usage "no context file $(one_line "$context")"
        [ -f "$context" ] || usage "the context is not a regular file: $(one_line "$context")"
        [ -r "$context" ] || usage "the context file is not readable: $(one_line "$context")"
    fi
    cli_mode=${TFX_CLI_MODE:-auto}
    is_word_of "$cli_mode" "auto $CLIS" ||
        usage "unknown TFX_CLI_MODE $(one_line "$cli_mode"); it is one of auto $CLIS"
    case ${HOME-} in
        /*) [ -d "$HOME" ] || fail 5 "refused: HOME is not a directory: $(one_line "$HOME")" ;;
        *) fail 5 'refused: HOME is not an absolute path; set it to your home directory' ;;
    esac

    trap clean_up EXIT
    find_tfx && hand_over "$1" "$2" "${3-}" "${4:+$timeout_s}" "$context"
    make_run_dir
    if [ "$2" = - ]; then
        cat >"$run/prompt"
    else
        printf '%s' "$2" >"$run/prompt"
    fi || fail 1 "cannot write the prompt to $run"
    [ -s "$run/prompt" ] || usage 'the prompt is empty'
    if [ -n "$context" ]; then
        add_context "$context" || fail 1 "cannot write the context to $run"
    fi
    [ "$(tr -d '\000' <"$run/prompt" | wc -c)" -eq "$(size_of "$run/prompt")" ] ||
        fail 5 'refused: the prompt or the context has a NUL byte'

    if [ "$verb$cli_mode" = nativeauto ] && [ -n "${CLAUDECODE-}" ]; then
        printf 'ROUTE_TYPE=claude-native\nAGENT=%s\nMODEL=%s\nRUN_MODE=%s\nTIMEOUT=%s\n' \
            "$role" "$effort" "$mode" "$timeout_s"
        printf 'MCP_PROFILE=%s\nPROMPT=' "$profile"
        cat "$run/prompt"
        printf '\n'
        exit 0
    fi

    if ! command -v setsid >/dev/null 2>&1 && ! command -v perl >/dev/null 2>&1; then
        fail 5 'refused: an agent cannot be ended as a whole without setsid (util-linux) or perl'
    fi
    path_dirs=$(printf '%s\n' "$caller_path" | tr ':' '\n')
    known_dirs=$(usual_dirs)
    wanted=$cli_mode
    if [ "$cli_mode" = auto ]; then
        wanted=$preferred
        for candidate in $CLIS; do
            [ "$candidate" = "$preferred" ] || wanted="$wanted $candidate"
        done
    fi
    if ! choose_cli "$wanted"; then
        say "no usable CLI for role $role: looked for $wanted in these directories:"
        printf '  %s\n' "${caller_path:-PATH is empty}" >&2
        printf '%s\n' "$known_dirs" | sed -n '\|^/.|s/^/  /p' >&2
        [ "$cli_mode" = auto ] || say "TFX_CLI_MODE=$cli_mode forces that one"
        exit 4
    fi
    started=$(date +%s)
    run_cli
    elapsed_s=$(($(date +%s) - started))
    rm -f "$run/prompt"
    report
}

main "$@"
