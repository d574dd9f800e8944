/**
 * Run it with the path of a database, or without for one with a few mountains in it.
 */
import * as Stdio from "@skein/server/Stdio"
import * as Layer from "effect/Layer"
import * as Database from "./database.ts"
import { SqliteExplorer } from "./server.ts"

Stdio.runMain(Layer.provide(SqliteExplorer, Database.layer(process.argv[2])))
