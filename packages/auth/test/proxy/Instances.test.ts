import * as SqliteClient from "@skein/sql/SqliteClient"
import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { instancesShare, storesAgree } from "./instances.ts"

const database = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-proxy-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => SqliteClient.layer({ filename: join(folder, "proxy.db") })
)

describe("several instances over SQLite", () => {
  it.live("agree on what is used, taken, locked and removed", () => Effect.flatMap(database, storesAgree))

  it.live("serve one sign-in together, and renew the upstream's token once", () =>
    Effect.flatMap(database, instancesShare))
})
