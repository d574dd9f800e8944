/**
 * Ends this process with SIGTERM when the npm process that started it has exited. npm runs a script in a shell, and
 * many shells do not forward signals: after a SIGTERM to npm, the program would continue and occupy its port.
 *
 * The scripts in `package.json` load this module with `node --import`, before the program. It does nothing in a process
 * that npm has not started.
 */
const exitWithNpm = (): void => {
  if (process.env["npm_lifecycle_event"] === undefined) return
  const { ppid } = process
  const watch = setInterval(() => {
    if (process.ppid === ppid) return
    clearInterval(watch)
    process.kill(process.pid, "SIGTERM")
  }, 200)
  watch.unref()
}

exitWithNpm()
