export * as Stdio from "./Stdio.ts"
