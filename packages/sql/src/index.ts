export * as PgClient from "./PgClient.ts"
export * as SqliteClient from "./SqliteClient.ts"
