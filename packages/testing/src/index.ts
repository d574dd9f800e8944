export * as FaultyServer from "./FaultyServer.ts"
export * as Scenario from "./Scenario.ts"
export * as ScriptedServer from "./ScriptedServer.ts"
