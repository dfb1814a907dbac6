// SPDX-License-Identifier: GPL-2.0-only
/* /dev/gpuseg-nv: the controller's side. The ioctls are described in gpuseg_nv.h. */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "gpuseg_nv_internal.h"

static int gpuseg_nv_device_open(struct inode *inode, struct file *file)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	return gpuseg_nv_controller_open();
}

static int gpuseg_nv_device_release(struct inode *inode, struct file *file)
{
	gpuseg_nv_controller_close();
	return 0;
}

static __poll_t gpuseg_nv_device_poll(struct file *file, poll_table *table)
{
	poll_wait(file, gpuseg_nv_wait_queue(), table);
	return gpuseg_nv_has_news() ? EPOLLIN | EPOLLRDNORM : 0;
}

static long gpuseg_nv_ioctl_info(void __user *arg)
{
	struct gpuseg_nv_info info;

	gpuseg_nv_info(&info);
	return copy_to_user(arg, &info, sizeof(info)) ? -EFAULT : 0;
}

static long gpuseg_nv_ioctl_switch(void __user *arg)
{
	struct gpuseg_nv_target *targets = NULL;
	struct gpuseg_nv_switch request;
	size_t size;
	long rc;

	if (copy_from_user(&request, arg, sizeof(request)))
		return -EFAULT;
	if (request.count > GPUSEG_NV_TARGETS_MAX)
		return -E2BIG;
	size = array_size(request.count, sizeof(*targets));
	if (size) {
		targets = memdup_user(u64_to_user_ptr(request.targets), size);
		if (IS_ERR(targets))
			return PTR_ERR(targets);
	}
	rc = gpuseg_nv_switch(&request, targets);
	if ((rc == 0 || rc == -EIO) &&
	    ((size && copy_to_user(u64_to_user_ptr(request.targets), targets, size)) ||
	     copy_to_user(arg, &request, sizeof(request))))
		rc = -EFAULT;
	kfree(targets);
	return rc;
}

static long gpuseg_nv_ioctl_watchdog(void __user *arg)
{
	struct gpuseg_nv_watchdog w;

	if (copy_from_user(&w, arg, sizeof(w)))
		return -EFAULT;
	return w.reserved ? -EINVAL : gpuseg_nv_set_watchdog(w.period_ms);
}

static long gpuseg_nv_ioctl_protect(void __user *arg)
{
	struct gpuseg_nv_name n;

	if (copy_from_user(&n, arg, sizeof(n)))
		return -EFAULT;
	if (!n.name[0] || strnlen(n.name, sizeof(n.name)) == sizeof(n.name))
		return -EINVAL;
	return gpuseg_nv_protect(n.name);
}

static long gpuseg_nv_ioctl_list(void __user *arg)
{
	struct gpuseg_nv_process *processes = NULL;
	struct gpuseg_nv_list list;
	u32 room, n;
	long rc = 0;

	if (copy_from_user(&list, arg, sizeof(list)))
		return -EFAULT;
	if (list.reserved)
		return -EINVAL;
	room = min_t(u32, list.count, GPUSEG_NV_TARGETS_MAX);
	if (room) {
		processes = kcalloc(room, sizeof(*processes), GFP_KERNEL_ACCOUNT);
		if (!processes)
			return -ENOMEM;
	}
	n = gpuseg_nv_list(processes, room);
	list.count = n;
	n = min(n, room);
	if ((n && copy_to_user(u64_to_user_ptr(list.processes), processes, n * sizeof(*processes))) ||
	    copy_to_user(arg, &list, sizeof(list)))
		rc = -EFAULT;
	kfree(processes);
	return rc;
}

static long gpuseg_nv_device_ioctl(struct file *file, unsigned int cmd, unsigned long argument)
{
	void __user *arg = (void __user *)argument;

	switch (cmd) {
	case GPUSEG_NV_IOC_INFO:
		return gpuseg_nv_ioctl_info(arg);
	case GPUSEG_NV_IOC_SWITCH:
		return gpuseg_nv_ioctl_switch(arg);
	case GPUSEG_NV_IOC_WATCHDOG:
		return gpuseg_nv_ioctl_watchdog(arg);
	case GPUSEG_NV_IOC_PROTECT:
		return gpuseg_nv_ioctl_protect(arg);
	case GPUSEG_NV_IOC_LIST:
		return gpuseg_nv_ioctl_list(arg);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations gpuseg_nv_device_operations = {
	.owner = THIS_MODULE,
	.open = gpuseg_nv_device_open,
	.release = gpuseg_nv_device_release,
	.poll = gpuseg_nv_device_poll,
	.unlocked_ioctl = gpuseg_nv_device_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice gpuseg_nv_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "gpuseg-nv",
	.fops = &gpuseg_nv_device_operations,
	.mode = 0600,
};

int gpuseg_nv_device_init(void)
{
	return misc_register(&gpuseg_nv_device);
}

void gpuseg_nv_device_exit(void)
{
	misc_deregister(&gpuseg_nv_device);
}
