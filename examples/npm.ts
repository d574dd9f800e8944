/**
 * Ends this process when the one that started it is gone, if npm did. npm runs a script in a shell, and many a shell passes no signal
 * on: told to end, both of them are gone, and the server would stay and keep its port.
 */
export const endWithNpm = (): void => {
  if (process.env["npm_lifecycle_event"] === undefined) return
  const { ppid } = process
  const watch = setInterval(() => {
    if (process.ppid === ppid) return
    clearInterval(watch)
    process.kill(process.pid, "SIGTERM")
  }, 200)
  watch.unref()
}
