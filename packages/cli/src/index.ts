export * as Call from "./Call.ts"
