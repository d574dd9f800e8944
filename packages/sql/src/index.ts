export * as SqliteClient from "./SqliteClient.ts"
