/**
 * `npm run postgres`: starts a PostgreSQL server from npm with an empty database for the tea house, in a temporary
 * folder that is deleted at the end.
 */
import { setInterval } from "node:timers"
import { startPostgres, unavailable } from "../../packages/sql/test/postgres.ts"

if (unavailable !== undefined) {
  console.error(unavailable)
  process.exit(1)
}

const server = await startPostgres()
const url = await server.createDatabase()
console.log(`PostgreSQL is running; Ctrl-C stops it and deletes its data. Use it with:
  npm start -- --postgres ${url}
  npm run worker -- --postgres ${url}`)

const keepAlive = setInterval(() => {}, 60_000)
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    clearInterval(keepAlive)
    void server.stop()
  })
}
