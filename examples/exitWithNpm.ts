/**
 * Ends this process with SIGTERM when the npm process that started it has exited. npm runs a script in a shell, and
 * many shells do not forward signals: after a SIGTERM to npm, the server would continue and occupy its port. Does
 * nothing in a process that npm has not started.
 */
export const exitWithNpm = (): void => {
  if (process.env["npm_lifecycle_event"] === undefined) return
  const { ppid } = process
  const watch = setInterval(() => {
    if (process.ppid === ppid) return
    clearInterval(watch)
    process.kill(process.pid, "SIGTERM")
  }, 200)
  watch.unref()
}
