export * as CodeMode from "./CodeMode.ts"
export * as ProgramError from "./ProgramError.ts"
export * as Sandbox from "./Sandbox.ts"
