export * as Console from "./Console.ts"
export * as ConsoleError from "./ConsoleError.ts"
export * as ConsoleSource from "./ConsoleSource.ts"
export * as ConsoleTasks from "./ConsoleTasks.ts"
