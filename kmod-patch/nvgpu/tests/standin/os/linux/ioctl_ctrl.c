// SPDX-License-Identifier: GPL-2.0-only
/* Stand-in: the control device's entry, with one other ioctl. */
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/ioctl.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <nvgpu/gk20a.h>

#include "ctrl_priv.h"

#define NVGPU_GPU_IOCTL_OTHER _IO('G', 1)

int gk20a_ctrl_dev_release(struct inode *inode, struct file *filp);
long gk20a_ctrl_dev_ioctl(struct file *filp, unsigned int cmd, unsigned long arg);

int gk20a_ctrl_dev_release(struct inode *inode, struct file *filp)
{
	struct gk20a_ctrl_priv *priv = filp->private_data;
	struct gk20a *g = priv->g;

	gk20a_put(g);

	return 0;
}

long gk20a_ctrl_dev_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct gk20a_ctrl_priv *priv = filp->private_data;
	struct gk20a *g = priv->g;
	u8 buf[128] __aligned(8);
	int err = 0;

	if (_IOC_SIZE(cmd) > sizeof(buf))
		return -EINVAL;
	memset(buf, 0, sizeof(buf));
	if (_IOC_DIR(cmd) & _IOC_WRITE) {
		if (copy_from_user(buf, (void __user *)arg, _IOC_SIZE(cmd)))
			return -EFAULT;
	}
	switch (cmd) {
	case NVGPU_GPU_IOCTL_OTHER:
		err = g ? 0 : -ENODEV;
		break;
	default:
		err = -ENOTTY;
		break;
	}
	if (err == 0 && (_IOC_DIR(cmd) & _IOC_READ)) {
		if (copy_to_user((void __user *)arg, buf, _IOC_SIZE(cmd)))
			err = -EFAULT;
	}

	return err;
}
