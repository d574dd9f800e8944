/**
 * A PostgreSQL database to try the tea house with, `npm run postgres`, where there is none: from npm, in a temporary folder, gone when it
 * ends.
 */
import { setInterval } from "node:timers"
import { startPostgres, unavailable } from "../../packages/sql/test/postgres.ts"
import { endWithNpm } from "../npm.ts"

if (unavailable !== undefined) {
  console.error(unavailable)
  process.exit(1)
}

const server = await startPostgres()
const url = await server.createDatabase()
console.log(`A database, until Ctrl-C:
  npm start -- --postgres ${url}
  npm run worker -- --postgres ${url}`)

const stay = setInterval(() => {}, 60_000)
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    clearInterval(stay)
    void server.stop()
  })
}
endWithNpm()
