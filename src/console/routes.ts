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

/** @param name in the navigation */
const route = (pattern: string, roles: readonly Role[], load: () => Promise<Page>, name?: string): Route => ({
  ...{ pattern, roles, page: later(load) },
  ...(name !== undefined && { name }),
})

export const routes: readonly Route[] = [
  { pattern: '/', name: 'Queue', roles: everyone, page: QueuePage },
  route('/requests/:id', everyone, async () => (await import('./queue/request-page.tsx')).RequestPage),
  route('/history', everyone, async () => (await import('./history/page.tsx')).HistoryPage, 'History'),
  route('/grants', everyone, async () => (await import('./grants/page.tsx')).GrantsPage, 'Grants'),
  route('/agents', readers, async () => (await import('./agents/list.tsx')).AgentsPage, 'Agents'),
  route('/agents/new', ['admin'], async () => (await import('./agents/new.tsx')).NewAgentPage),
  route('/agents/:id', everyone, async () => (await import('./agents/page.tsx')).AgentPage),
  route('/policies', readers, async () => (await import('./policies/list.tsx')).PoliciesPage, 'Policies'),
  route('/policies/:name', readers, async () => (await import('./policies/page.tsx')).PolicyPage),
  route('/policies/:name/edit', readers, async () => (await import('./policies/edit.tsx')).EditPolicyPage),
  route('/new-policy', ['admin'], async () => (await import('./policies/edit.tsx')).NewPolicyPage),
  route('/make', everyone, async () => (await import('./make/page.tsx')).MakePage),
  route('/budgets', everyone, async () => (await import('./budgets/page.tsx')).BudgetsPage, 'Budgets'),
  route('/budgets/:name', everyone, async () => (await import('./budgets/page.tsx')).BudgetPage),
  route('/credentials', readers, async () => (await import('./credentials/page.tsx')).CredentialsPage, 'Credentials'),
  route('/connect/:name', everyone, async () => (await import('./credentials/connect.tsx')).ConnectPage),
  route('/connected/:name', everyone, async () => (await import('./credentials/connect.tsx')).ConnectedPage),
  route('/audit', readers, async () => (await import('./audit/page.tsx')).AuditPage, 'Audit'),
  route('/overview', everyone, async () => (await import('./overview/page.tsx')).OverviewPage, 'Overview'),
]
