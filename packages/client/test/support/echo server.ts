/** A server on stdio, in a file whose name has a space. */
import { AsyncServer } from "@skein/server/AsyncServer"
import * as Schema from "effect/Schema"

new AsyncServer({ name: "echo", version: "1" })
  .tool("echo", { input: { text: Schema.String } }, ({ text }) => text)
  .runStdio()
