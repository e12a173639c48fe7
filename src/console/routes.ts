/** The routes, in the order of the navigation. All but the queue are fetched when they are opened first. */
import { later, type Page } from './parts/later.tsx'
import { QueuePage } from './queue/page.tsx'
import type { Role } from './types.ts'

export interface Route {
  readonly pattern: string
  /** Name in the navigation; absent: not in it. */
  readonly name?: string
  /** Of these one is needed. */
  readonly roles: readonly Role[]
  readonly page: Page
}

const everyone: readonly Role[] = ['reviewer', 'auditor', 'admin']
const readers: readonly Role[] = ['auditor', 'admin']

export const routes: readonly Route[] = [
  { pattern: '/', name: 'Queue', roles: everyone, page: QueuePage },
  {
    pattern: '/requests/:id',
    roles: everyone,
    page: later(async () => (await import('./queue/request-page.tsx')).RequestPage),
  },
  {
    pattern: '/history',
    name: 'History',
    roles: everyone,
    page: later(async () => (await import('./history/page.tsx')).HistoryPage),
  },
  {
    pattern: '/grants',
    name: 'Grants',
    roles: everyone,
    page: later(async () => (await import('./grants/page.tsx')).GrantsPage),
  },
  {
    pattern: '/agents',
    name: 'Agents',
    roles: readers,
    page: later(async () => (await import('./agents/list.tsx')).AgentsPage),
  },
  {
    pattern: '/agents/new',
    roles: ['admin'],
    page: later(async () => (await import('./agents/new.tsx')).NewAgentPage),
  },
  {
    pattern: '/agents/:id',
    roles: everyone,
    page: later(async () => (await import('./agents/page.tsx')).AgentPage),
  },
  {
    pattern: '/policies',
    name: 'Policies',
    roles: readers,
    page: later(async () => (await import('./policies/list.tsx')).PoliciesPage),
  },
  {
    pattern: '/policies/:name',
    roles: readers,
    page: later(async () => (await import('./policies/page.tsx')).PolicyPage),
  },
  {
    pattern: '/policies/:name/edit',
    roles: readers,
    page: later(async () => (await import('./policies/edit.tsx')).EditPolicyPage),
  },
  {
    pattern: '/new-policy',
    roles: ['admin'],
    page: later(async () => (await import('./policies/edit.tsx')).NewPolicyPage),
  },
  {
    pattern: '/make',
    roles: everyone,
    page: later(async () => (await import('./make/page.tsx')).MakePage),
  },
  {
    pattern: '/budgets',
    name: 'Budgets',
    roles: everyone,
    page: later(async () => (await import('./budgets/page.tsx')).BudgetsPage),
  },
  {
    pattern: '/budgets/:name',
    roles: everyone,
    page: later(async () => (await import('./budgets/page.tsx')).BudgetPage),
  },
  {
    pattern: '/credentials',
    name: 'Credentials',
    roles: readers,
    page: later(async () => (await import('./credentials/page.tsx')).CredentialsPage),
  },
  {
    pattern: '/connect/:name',
    roles: everyone,
    page: later(async () => (await import('./credentials/connect.tsx')).ConnectPage),
  },
  {
    pattern: '/connected/:name',
    roles: everyone,
    page: later(async () => (await import('./credentials/connect.tsx')).ConnectedPage),
  },
  {
    pattern: '/audit',
    name: 'Audit',
    roles: readers,
    page: later(async () => (await import('./audit/page.tsx')).AuditPage),
  },
  {
    pattern: '/overview',
    name: 'Overview',
    roles: everyone,
    page: later(async () => (await import('./overview/page.tsx')).OverviewPage),
  },
]
