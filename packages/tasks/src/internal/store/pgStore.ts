/**
 * The store on PostgreSQL, which hears of changes in all processes.
 */
import { PgClient } from "@skein/sql/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as SqlClient from "effect/sql/SqlClient"
import type { TaskError } from "../../TaskError.ts"
import { storeError } from "./database.ts"
import * as SqlStore from "./sqlStore.ts"
import type { TaskStore } from "./store.ts"

/** One connection more than the client's pool: the one that listens. */
export const layer: Layer.Layer<TaskStore, TaskError, PgClient | SqlClient.SqlClient> = /* @__PURE__ */ Layer.unwrap(
  Effect.map(PgClient, (client) =>
    SqlStore.layer({
      signals: (channel, heard, missed) => Effect.mapError(client.listen(channel, heard, missed), storeError)
    }))
)
