/** A server on stdio, for proxies: it returns its process id. */
import { AsyncServer } from "skein"

new AsyncServer({ name: "remote", version: "1.0.0" })
  .tool("pid", {}, () => process.pid)
  .runStdio()
