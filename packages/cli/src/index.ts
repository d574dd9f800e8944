export * as Call from "./Call.ts"
export * as Skein from "./Skein.ts"
