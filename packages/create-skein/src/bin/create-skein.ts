#!/usr/bin/env node
import { main } from "../CreateSkein.ts"

process.exitCode = await main(process.argv.slice(2))
