/**
 * A worker of the tea house, `npm run worker`: the same definitions, and no door. It works on the tasks in the PostgreSQL database that
 * `--postgres` names, with whoever else does, and says what it does.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { parseArgs } from "node:util"
import { endWithNpm } from "../npm.ts"
import { heard } from "./kitchen.ts"
import { TeaHouse } from "./server.ts"

const url = (): string => {
  const usage = "usage: npm run worker -- --postgres <url>"
  try {
    const { postgres } = parseArgs({ options: { postgres: { type: "string" } } }).values
    if (postgres !== undefined) return postgres
    console.error(usage)
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n${usage}`)
  }
  return process.exit(2)
}

const Engine = PostgresTasks.layer({ url: url() })

const Worker = TeaHouse.pipe(
  Layer.provideMerge(Layer.effectDiscard(Effect.acquireRelease(
    Effect.sync(() =>
      console.log(`A worker of the tea house. Ctrl-C lets it go gently, kill -9 ${process.pid} does not.`)
    ),
    () => Effect.sync(() => console.log("The worker has gone. Others go on with what it had."))
  ))),
  Layer.provide([Engine, heard(process.stdout)])
)

endWithNpm()
NodeRuntime.runMain(
  Effect.catchTag(Layer.launch(Worker), "TaskError", ({ message }) =>
    Effect.sync(() => {
      console.error(message)
      process.exitCode = 1
    }))
)
