# Steps with time limits, for the scripts in this folder.

# The process groups of the running command and of its timer, which end with the script.
groups=()
end_groups() {
  local group
  for group in "${groups[@]+"${groups[@]}"}"; do kill -KILL -- "-$group" 2>/dev/null || true; done
  groups=()
}
trap end_groups EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Runs a command, and ends it after some seconds. When it returns, no process of the command is left, except for those
# that have a process group of their own.
limited() {
  local seconds="$1" status=0 stopped=""
  shift
  # A signal that arrives before the groups are known would leave their processes.
  trap 'stopped=130' INT
  trap 'stopped=143' TERM
  # The shell reports the ends of jobs on stderr, where nobody needs them.
  exec 3>&2 2>/dev/null
  # With job control each command has a process group of its own.
  set -m
  "$@" 2>&3 3>&- &
  local command=$!
  (
    sleep "$seconds"
    echo "==> not finished within $seconds s" >&3
    kill -TERM -- "-$command"
    sleep 10
    kill -KILL -- "-$command"
  ) &
  groups=("$command" "$!")
  trap 'exit 130' INT
  trap 'exit 143' TERM
  set +m
  if [ -n "$stopped" ]; then exit "$stopped"; fi
  wait "$command" || status=$?
  end_groups
  wait
  exec 2>&3 3>&-
  return "$status"
}

# Runs a step: its name, the minutes in which it must finish, its command. The script ends if the step fails.
step() {
  local name="$1" seconds=$(($2 * 60)) start=$SECONDS
  shift 2
  echo "==> $name"
  limited "$seconds" "$@" || { echo "==> $name FAILED after $((SECONDS - start)) s" >&2; exit 1; }
  echo "==> $name: $((SECONDS - start)) s"
}
