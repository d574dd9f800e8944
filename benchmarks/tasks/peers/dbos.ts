/**
 * DBOS Transact with the workflows that correspond to the measured tools. Its other options have their defaults.
 */
import { DBOS } from "@dbos-inc/dbos-sdk"
import { burst, type Execute, runCommandLoop } from "../commandLoop.ts"
import { type Command, done, type Tool } from "../commands.ts"

const step = (number: number): Promise<string> =>
  DBOS.runStep(async () => `${DBOS.workflowID} ${number}`, { name: `step ${number}` })

const withSteps = (name: string, count: number) =>
  DBOS.registerWorkflow(async () => {
    for (let number = 1; number <= count; number++) await step(number)
    return done
  }, { name })

const workflows: Record<Exclude<Tool, "plain">, () => Promise<string>> = {
  one: withSteps("one", 1),
  five: withSteps("five", 5)
}

const open = async (url: string): Promise<void> => {
  DBOS.setConfig({ name: "bench", systemDatabaseUrl: url, logLevel: "error" })
  await DBOS.launch()
}

/** Runs a workflow from its creation to its result, and checks the result. */
const task = async (tool: keyof typeof workflows): Promise<void> => {
  const handle = await DBOS.startWorkflow(workflows[tool])()
  const result = await handle.getResult()
  if (result !== done) throw new Error(`${tool} ended with ${JSON.stringify(result)}`)
}

const runBurst = ({ inFlight, millis, tool }: Extract<Command, { readonly do: "burst" }>) => {
  if (tool === "plain") throw new Error("every workflow of DBOS is durable")
  return burst(millis, async (next) => {
    const worker = async (): Promise<void> => {
      while (next()) await task(tool)
    }
    await Promise.all(Array.from({ length: inFlight }, worker))
  })
}

const execute: Execute = async (command) => {
  if (command.do === "open") return open(command.at)
  if (command.do === "burst") return runBurst(command)
  return undefined
}

runCommandLoop(execute)
